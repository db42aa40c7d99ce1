// Package cases holds the actions against trouble that people really had with
// systems like this one. Each case has an id, and a test named by it, which
// stands for a whole kind of trouble: where it can, it is generic over the
// catalogue, so that a new action is in it without a line here. The package has
// tests only, goes through the executor as every front does, and knows nothing
// of brokers and tunnels; what needs those stands in cmd/internal/integration
// under the same ids.
//
// What a case asks for and no test shows yet:
//
//	K15  no field says whether the index was fresh: reads of the index wait for
//	     it, so an answer is fresh or an error
//	K19  kernels before 3.7: one version of SiYuan is tried; what an older one lacks
//	     is told like any endpoint that is gone (K36), and a cell that it did not
//	     write is not told as written (K32)
//	K24  daily notes from a template: SiYuan makes the note, and one whose template
//	     is missing comes out blank and is told as created; that a template path
//	     stays in its folder is tested (K43)
//	K30  service accounts with Windows code pages: needs Windows; a no-break space
//	     (U+00A0) becomes a space when SiYuan stores Markdown
//	K39  a sync as a whole: SiYuan tells of a document that sync is about to
//	     replace it, which is tested, and nothing of uploads, so writes are
//	     neither queued nor verified again after one
//	K40  a crashing binary: supervisors and previous versions belong to the
//	     packages of a release, not to the connector
//	K41  file.read: there is no file tool; every argument that is a path is tested
//	K43  file.write: there is no file tool; every argument that is a path is tested
package cases
