// Package ec2test simulates AWS in tests: an HTTP server for the real clients of the SDK (E-63).
//
// # What is served
//
// Five protocols: EC2's query, IAM's query, JSON 1.0 (SQS) and 1.1 (SSM, Pricing), and EKS's paths. The signature's
// scope names the service. The tables of actions are in actions.go and beside each service. An unknown parameter or
// action is refused and reported to Options.Unknown, which fails the test: nothing is silently ignored. Every request
// is recorded with the rights that it needs (Calls, Counts).
//
// The world has its own time: it stands still until Advance moves it, or follows Options.Now. Signatures, latency and
// the long poll of a queue follow the clock of the machine. One lock guards all state, so a request sees a consistent
// world.
//
// # What follows AWS's documentation
//
//   - Signature Version 4, computed anew; the bound of 15 minutes; RequestExpired, AuthFailure and
//     SignatureDoesNotMatch.
//   - Codes of the EC2 API reference, and its bounds on pages, filter values, tags, user data, templates, overrides
//     and tokens.
//   - A listing takes ids or a page size, not both; filters are case-sensitive and have * and ?.
//   - A call to TerminateInstances with an unknown id does nothing. With a protected instance, those of its zone stay
//     and others end.
//   - A repeated client token with other parameters is IdempotentParameterMismatch.
//   - A fleet of type instant answers with the instances and, beside them, why pools gave none.
//   - A spot instance has two minutes from its warning; a terminated instance is listed for an hour.
//   - A queue's message is hidden for its visibility time, and a receipt holds until the next delivery.
//
// # What is assumed, and where it can be switched
//
// Nothing here was compared with a real account. Where EC2's behaviour is not documented, the endpoint chooses one. It
// has a switch where the provider must handle several:
//
//   - Faults.Tokens: a repeated token gives the original answer (also one without instances), the fleet's id alone, a
//     mismatch, or a second launch. The default is the first.
//   - Faults.Visibility: an instance that is late is hidden from listings, tags and termination alike.
//   - Faults.SkewCode: which code a wrong clock gets.
//   - Faults.LostBefore, LostAfter: a cut connection, or a server error, with the effect or without.
//   - Faults.Omit: fields of an instance that some other servers leave out.
//   - Faults.Garbled: an answer that cannot be read.
//   - Faults.FleetErrors: errors of a fleet that name no pool, instead of its instances or beside them.
//   - Pool.Code: how a pool without capacity refuses.
//   - A pool is chosen by price; with a strategy that names capacity, pools with enough for the whole fleet come
//     first. A fleet fills one pool before it begins the next, and reports every pool that it tried.
//   - Duplicate pools and too many overrides are InvalidFleetConfig, for the whole call; a template that does not
//     exist, too. Errors of an image, a group, a volume, a profile or a right to RunInstances are reported for each
//     pool.
//   - Spot prices have the product Linux/UNIX only, as accounts without EC2-Classic.
//   - A deprecated image is listed to its owner, by its id, or when asked for.
//   - An instance runs 15 seconds after its launch and is terminated 30 seconds after its end. Addresses and capacity
//     are free at the end.
//   - The instances of a capacity block end 30 minutes before it, as documented; the code of their end is made up.
//   - Prices are made up from vCPUs, memory and GPUs unless set; spot is 30 to 60 % of that by type and zone.
//   - Launch templates have one version, fleets one capacity type, and RunInstances is for dry runs.
//   - Resources created through the API (networks, groups, images, roles, queues) exist at once and have no quota. An
//     image needs no snapshot.
//
// # Clients
//
// Config has credentials and a transport for the SDK's clients. The SDK fills in a client token in the caller's own
// input: sending one input twice repeats the call.
package ec2test
