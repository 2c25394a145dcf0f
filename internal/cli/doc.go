// Package cli implements the commands of capper that call a running service or read the audit. Package ops has the
// commands about whole stores.
//
// The commands about audiences divide the users into batches (type Todo), collect the decisions (type Results), and
// write the users to files (type Outputs). Commands share groups of flags: for the service (Service), for the location
// of the audit (Place) and for the users of an audience expression (Narrowed). The commands add advice to errors that
// the service returns.
//
// The command `capper pace` copies lines at the rate of a pacer (Copy). `capper pace` writes a line after the service
// has granted a permit for the line. If several permits arrive together, `capper pace` writes several lines together.
// While a write or a read blocks, `capper pace` still knows the number of copied lines.
//
// The commands `capper audit` list decisions about a user or a message, export decisions as rows, and verify and
// compact the audit. The command `capper whatif` decides the recorded calls again under other limits. The commands
// `capper audit` and `capper whatif` read the files at the location of the audit. The command `capper audit` calls the
// service only to compare the audit with the store. The command `capper whatif` never calls the service.
package cli
