// Package samplekernel is a stand-in for a SiYuan kernel: an HTTP handler that
// answers /api/* the way SiYuan 3.7.3 was recorded to answer, over a workspace
// folder of .sy files it can find again after a restart. Demos, end-to-end
// tests and the conformance test of the connector run against it.
//
// It imitates the traps on purpose: a bad argument often answers code 0 with
// data null, SQL lags behind writes until a flush, plain SELECTs stop at 64
// rows, closed notebooks vanish from everything but the notebook list, and
// references to unknown blocks lose their id. CONFORMANCE.md says how far the
// imitation goes. Faults (see Kernel.Faults) add what a real kernel does on a
// bad day: refused connections, half answers, an index that is still building.
//
// It is written from recorded behaviour, shares no code with SiYuan, and must
// not know the connector or the broker: they see it only through HTTP.
package samplekernel
