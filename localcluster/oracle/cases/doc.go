// Package cases makes clusters at the level of the API, has Joiner plan for them, and asks the oracle about the plans
// (P-21). The path is that of production: pods are admitted by the API server's own code, objects go through
// world.Store and translate, engine.Provision plans, translate.NodeClaimFor writes claims, and a simulated provider
// turns these into nodes. So the oracle judges what users get, not only the engine.
//
// Generate makes a case from a seed, [Judge.Run] runs it, [Judge.Minimise] makes a failing one small, and
// [Judge.Report] prints it: as YAML and, as far as possible, in the script language of the engine's tests, so that it
// can be kept.
package cases
