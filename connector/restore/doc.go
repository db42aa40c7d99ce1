// Package restore keeps restore points: for every document that an agent's sitting
// wrote to, how it was before and how the agent left it; for every write to a
// database, the cells it changed. It is a small SQLite file in the connector's data
// folder.
//
// It holds ids, times, digests, paths of files in SiYuan's own history, of each
// document the title and the attributes it had, and of each database its name and
// what the cells said: what SiYuan's history cannot give back one by one. Texts of
// documents stay in SiYuan's history. Only the account that runs the connector may
// read the file, and it never leaves the home.
//
// What it forgets first when it is full are the oldest points. It knows nothing of
// the kernel; bringing a document back is for package guard.
package restore
