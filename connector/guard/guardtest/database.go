package guardtest

import (
	"context"
	"testing"
	"time"

	"siyuan-broker/connector/siyuan"
)

// The database of [AddDatabase].
const (
	Database      = "20240106120000-taskavs"
	DatabaseBlock = "20240106120000-avblock" // shows it, in Beta
	DatabaseRow   = "20240106120001-rowloos" // a row of its own
	DatabaseTitle = "20240106120000-keytitl" // the primary column
	DatabaseText  = "20240106120000-keynote" // a text column
	DatabaseCount = "20240106120000-keynumb" // a number column
	DatabaseView  = "20240106120000-avview1" // a table that the block shows
	DatabasePick  = "20240106120000-keypick" // a select column with the options Open and Done
	DatabaseOwner = "20240106120000-keyrela" // a two-way relation to People
	DatabaseFree  = "20240106120000-keyfree" // a relation that leads nowhere yet
	DatabaseAges  = "20240106120000-keyroll" // a rollup that collects nothing yet
	DatabaseDay   = "20240106120000-keydate" // a date column
	Template      = "20240106120000-tmplone" // a template of rows of their own

	People      = "20240106120000-peopavs"
	PeopleBlock = "20240106120000-peopblk" // shows it, in Beta
	PeopleRow   = "20240106120001-rowanna" // a row of its own
	PeopleAge   = "20240106120000-keyages" // a number column
	PeopleTasks = "20240106120000-keyback" // leads back to the other database
)

// AddDatabase makes the databases of the contract's examples. Their files are
// written as they are, because the kernel would choose the ids of some columns.
func AddDatabase(t testing.TB, w *siyuan.Writer) {
	t.Helper()
	ctx := context.Background()
	for _, id := range []string{Database, People} {
		dom := `<div class="av" data-node-id="` + ShownBy(id) + `" data-type="NodeAttributeView" data-av-id="` + id + `" data-av-type="table"></div>`
		_, err := w.AppendBlock(ctx, "20240102100200-betadoc", siyuan.DOM, dom)
		check(t, err)
		check(t, w.PutFile(ctx, "/data/storage/av/"+id+".json", []byte(DatabaseFiles()[id]), time.Time{}))
	}
}

// DatabaseFiles are the files of the databases, by id, as SiYuan stores them.
func DatabaseFiles() map[string]string { return map[string]string{Database: tasks, People: people} }

// ShownBy is the block that shows a database.
func ShownBy(database string) string {
	return map[string]string{Database: DatabaseBlock, People: PeopleBlock}[database]
}

const tasks = `{"spec":5,"id":"` + Database + `","name":"","viewID":"` + DatabaseView + `",
"keyValues":[
 {"key":{"id":"` + DatabaseTitle + `","name":"Primary Key","type":"block"},"values":[{"id":"20240106120003-cell001","keyID":"` + DatabaseTitle + `","blockID":"` + DatabaseRow + `","type":"block","isDetached":true,"block":{"content":"Buy paint"}}]},
 {"key":{"id":"` + DatabaseText + `","name":"Note","type":"text"}},
 {"key":{"id":"` + DatabaseCount + `","name":"Count","type":"number"}},
 {"key":{"id":"` + DatabasePick + `","name":"State","type":"select","options":[{"name":"Open","color":"2","desc":""},{"name":"Done","color":"3","desc":""}]}},
 {"key":{"id":"` + DatabaseDay + `","name":"Day","type":"date"}},
 {"key":{"id":"` + DatabaseOwner + `","name":"Owner","type":"relation","relation":{"avID":"` + People + `","isTwoWay":true,"backKeyID":"` + PeopleTasks + `"}}},
 {"key":{"id":"` + DatabaseFree + `","name":"Place","type":"relation"}},
 {"key":{"id":"` + DatabaseAges + `","name":"Ages","type":"rollup","rollup":{"relationKeyID":"","keyID":"","calc":{"operator":"","result":null}}}}],
"views":[{"id":"` + DatabaseView + `","name":"Table","type":"table","pageSize":50,"filters":[{"column":"","operator":"","value":null,"combination":"and"}],
 "itemIds":["` + DatabaseRow + `"],"table":{"id":"20240106120004-table01","showIcon":true,"columns":[
 {"id":"` + DatabaseTitle + `"},{"id":"` + DatabaseText + `"},{"id":"` + DatabaseCount + `"},{"id":"` + DatabasePick + `"},{"id":"` + DatabaseDay + `"},{"id":"` + DatabaseOwner + `"},{"id":"` + DatabaseFree + `"},{"id":"` + DatabaseAges + `"}]}}],
"newItemTemplates":[{"id":"` + Template + `","name":"Errand","targetType":"detached","fieldValues":{
 "` + DatabaseText + `":{"mode":"static","value":{"type":"text","text":{"content":"by bike"}}},"` + DatabaseDay + `":{"mode":"currentTime"}}}]}`

const people = `{"spec":5,"id":"` + People + `","name":"People","viewID":"20240106120000-peovie1",
"keyValues":[
 {"key":{"id":"20240106120000-peotitl","name":"Primary Key","type":"block"},"values":[{"id":"20240106120003-cell002","keyID":"20240106120000-peotitl","blockID":"` + PeopleRow + `","type":"block","isDetached":true,"block":{"content":"Anna"}}]},
 {"key":{"id":"` + PeopleAge + `","name":"Age","type":"number"},"values":[{"id":"20240106120003-cell003","keyID":"` + PeopleAge + `","blockID":"` + PeopleRow + `","type":"number","number":{"content":41,"isNotEmpty":true}}]},
 {"key":{"id":"` + PeopleTasks + `","name":"Tasks","type":"relation","relation":{"avID":"` + Database + `","isTwoWay":true,"backKeyID":"` + DatabaseOwner + `"}}}],
"views":[{"id":"20240106120000-peovie1","name":"Table","type":"table","pageSize":50,"filters":[{"column":"","operator":"","value":null,"combination":"and"}],
 "itemIds":["` + PeopleRow + `"],"table":{"id":"20240106120004-table02","showIcon":true,"columns":[
 {"id":"20240106120000-peotitl"},{"id":"` + PeopleAge + `"},{"id":"` + PeopleTasks + `"}]}}]}`
