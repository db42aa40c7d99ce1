// Package folders is the only way of agents to the disk of the connector's
// machine: into the folders that the home owner names in the home policy, for
// files that agents store in SiYuan and for what they take out of it.
//
// A path is walked one folder after the other from an opened one (os.Root), and
// every folder on the way is looked at once it is open, so that neither a link nor
// a file exchanged in between leads elsewhere. Never entered are hidden folders,
// SiYuan's workspaces and the data folders of this project, wherever they lie.
// What is written is new: nothing is replaced, emptied or deleted.
//
// The package knows neither SiYuan nor tools, and decides nothing about levels.
package folders
