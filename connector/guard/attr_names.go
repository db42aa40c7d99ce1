package guard

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"siyuan-broker/connector/siyuan"
	"siyuan-broker/contract"
)

var attrName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// freeAttrs are the attributes of a block that are its owner's to set, besides
// the custom- ones.
var freeAttrs = append([]string{"style", "tags"}, namedAttrs...)

// attrOwners say who sets the attributes that are not free, and how.
var attrOwners = map[string]string{
	"id": "is the block itself and never changes", "updated": "is kept by SiYuan", "type": "is kept by SiYuan",
	"av-names": "is computed by SiYuan", "custom-hidden": "is kept by SiYuan",
	"title": "is a document's title; use document.rename", "icon": "is set with document.set_attr or notebook.set_icon",
	"title-img": "is a document's cover; use document.set_attr", "fold": "is set with block.set_fold_state", "heading-fold": "is set with block.set_fold_state",
	"custom-avs": "ties the block to databases; use the av tool", "custom-riff-decks": "ties the block to card decks; use the flashcard tool",
}

// emojiIcon are the code points of an emoji, customIcon is the path of a picture
// below SiYuan's emojis folder, or a picture that SiYuan draws.
var (
	emojiIcon  = regexp.MustCompile(`^[0-9a-fA-F]{1,6}(?:-[0-9a-fA-F]{1,6})*$`)
	customIcon = regexp.MustCompile(`^(?:[\p{L}\p{N}_ -][\p{L}\p{N}_ .-]*/)*[\p{L}\p{N}_ -][\p{L}\p{N}_ .-]*\.(?:png|jpe?g|gif|svg|webp)$|^api/icon/getDynamicIcon\?[\p{L}\p{N}_=&%#.+-]*$`)
)

// checkIcon refuses what is no icon: SiYuan puts the value into its pages, as
// the address of a picture or as it is.
func checkIcon(icon string) error {
	if icon == "" || emojiIcon.MatchString(icon) || customIcon.MatchString(icon) {
		return nil
	}
	return contract.InvalidFields(contract.Field{Path: "icon", Message: "must be the hex code points of an emoji, such as 1f4d4, or the path of a picture in SiYuan's emojis folder, such as work/logo.png"})
}

// checkAttrs refuses attributes that are not the caller's to set, and gives the
// values the form in which SiYuan keeps them.
func checkAttrs(changes map[string]string) (siyuan.Attrs, error) {
	want, bad := siyuan.Attrs{}, []contract.Field{}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		rule := ""
		owner, owned := attrOwners[name]
		switch {
		case owned:
			rule = owner
		case !attrName.MatchString(name):
			rule = "a name has lower-case letters, digits and hyphens and begins with a letter"
		case strings.HasPrefix(name, "custom-sy-"):
			rule = "names that begin with custom-sy- are SiYuan's own"
		case !strings.HasPrefix(name, "custom-") && !slices.Contains(freeAttrs, name), name == "custom-":
			rule = "is no attribute of SiYuan's that may be set here; your own names begin with custom-"
		}
		if rule != "" {
			bad = append(bad, contract.Field{Path: "attrs." + shorten(name), Message: rule})
		}
		want[name] = storedValue(changes[name])
	}
	if len(changes) == 0 {
		bad = append(bad, contract.Field{Path: "attrs", Message: "name at least one attribute"})
	}
	if len(bad) > 0 {
		return nil, contract.InvalidFields(bad...)
	}
	return want, nil
}

// storedValue is a value as SiYuan keeps it: without zero width spaces and
// without space around it.
func storedValue(v string) string {
	return strings.TrimSpace(strings.ReplaceAll(withoutZWSP(v), escNewline, "\n"))
}
