// Command release makes what others install (U-11, U-33): images of the programs as OCI layouts, and archives of
// joinerctl. It needs no daemon and no base image. The same commit gives the same bytes, whoever makes it and where:
// nothing of the machine goes in, and every time is that of the commit.
//
//	release images --out DIR [PROGRAM ...]    an OCI layout for each program, with an image for each platform
//	release archives --out DIR                joinerctl for each system, and SHA256SUMS
//	release run --layout DIR [ARG ...]        unpack the image for this machine, and run it as its container would
//
// An image has the program, root certificates and nothing else: no shell, no user database, no package manager. It is
// a module of its own, since nothing else writes images.
package main
