package tools

import "siyuan-broker/contract"

// MascotIn is the input of actions that need none.
type MascotIn struct{}

// MascotBalanceOut is the output of mascot.get_balance.
type MascotBalanceOut struct {
	Action      string `json:"action"`
	Balance     int64  `json:"balance"`     // coins
	TotalEarned int64  `json:"totalEarned"` // one for each call of any other tool
}

// MascotShopOut is the output of mascot.shop.
type MascotShopOut struct {
	MascotBalanceOut
	Items []MascotItem `json:"items"`
}

// MascotItem is something the shop sells.
type MascotItem struct {
	ID    string `json:"id"`
	Label string `json:"label"`
	Cost  int64  `json:"cost"` // coins
	Type  string `json:"type"` // food, drink or snack
	Emoji string `json:"emoji"`
}

// MascotBuyIn is the input of mascot.buy.
type MascotBuyIn struct {
	ItemID string `json:"item_id" doc:"From shop." minlen:"1" maxlen:"64"`
}

// MascotBuyOut is the output of mascot.buy.
type MascotBuyOut struct {
	Success bool   `json:"success"`
	ItemID  string `json:"item_id"`
	Item    string `json:"item"` // its label
	Type    string `json:"type"`
	Emoji   string `json:"emoji"`
	Cost    int64  `json:"cost"`
	MascotBalanceOut
}

// The actions of the mascot tool.
var (
	MascotGetBalance = define[MascotIn, MascotBalanceOut](Action{
		Name: "get_balance", Kind: Read, Level: contract.Read, Scope: ScopeNone, AtBroker: true,
		Summary: "Tell the coins there are.", Examples: []string{`{}`},
	})
	MascotShop = define[MascotIn, MascotShopOut](Action{
		Name: "shop", Kind: Read, Level: contract.Read, Scope: ScopeNone, AtBroker: true,
		Summary: "List what the shop sells, with prices.", Examples: []string{`{}`},
	})
	MascotBuy = define[MascotBuyIn, MascotBuyOut](Action{
		Name: "buy", Kind: Write, Level: contract.Read, Scope: ScopeNone, AtBroker: true,
		Summary:  "Buy the cat something.",
		Guidance: []string{"Each call of another tool earns a coin. The coins belong to all agents of the tenant together; buy only when the person asks for it."},
		Examples: []string{`{"item_id":"milk"}`},
	})
)

func mascotTool() *Tool {
	return &Tool{
		Name:    "mascot",
		Title:   "Cat",
		Purpose: "Coins of the person's cat.",
		Actions: []*Action{MascotGetBalance.Action, MascotShop.Action, MascotBuy.Action},
	}
}
