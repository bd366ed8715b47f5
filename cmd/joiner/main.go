// Command joiner is the node autoscaler's controller. Settings are flags, or environment variables of the same name in
// capitals (--batch-idle-duration is BATCH_IDLE_DURATION); where Karpenter has the setting, it has Karpenter's name.
//
// It exits with 0 when it was asked to stop, with 2 when a flag is wrong, and with 1 on any other failure, with one
// line for each fault.
package main

import "github.com/joiner-autoscaler/joiner/cmd/internal/commandline"

func main() { commandline.Main(newProgram) }
