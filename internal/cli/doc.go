// Package cli implements the commands of capper that call a running service or read the audit. The commands about
// whole stores are in package ops, below.
//
// The commands decide an audience in batches (Todo), collect the results (Results) and write them to files (Outputs).
// All commands share the flags that name the service (Service), the audit location (Place) and the users of an
// audience expression (Narrowed). The commands add advice to errors of the service.
//
// The command pace copies lines at the rate of a pacer (Copy). The command writes a whole line once the line's permit
// is granted. It writes several lines together if their permits arrive together. The number of copied lines is known
// at any time, even while a write or a read hangs.
//
// The audit commands show the decisions for a user or a message, export them as rows, verify and compact the audit,
// and replay the decisions under other limits. The audit commands read the audit location; only a comparison with the
// store calls the service.
package cli
