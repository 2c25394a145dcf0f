package alerts

func permitted() Row {
	return Row{"Do senders get their permits?", []Panel{
		{Title: "Permits granted", Description: "Granted permits, by each pacer of the call.", Unit: "cps",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_granted_total{SELECTED}[$__rate_interval]))`,
				"{{pacer}}"}}},
		{Title: "Permits by share", Description: "Granted permits of pacers with shares, by the share of the call.",
			Unit: "cps", Queries: []Query{
				{`sum by (pacer, share) (rate(capper_share_permits_granted_total{SELECTED}[$__rate_interval]))`,
					"{{pacer}} {{share}}"}}},
		{Title: "Permits due", Description: "Permits whose time has come: the speed of all senders.", Unit: "cps",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_due_total{SELECTED}[$__rate_interval]))`,
				"{{pacer}}"}}},
		{Title: "Share of the pacer", Description: "Permits due, as a share of what the pacer allows in a second. " +
			"At 1, the pacer is full.", Unit: "percentunit",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_due_total{SELECTED}[$__rate_interval])) / max by (pacer) (capper_pacer_allowed_per_second{SELECTED})`,
				"{{pacer}}"}}},
		{Title: "Permits refused",
			Description: "Refused permits, by the limiting pacer. If refusals exceed grants for long, " +
				"the pacer is saturated.", Unit: "cps",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_refused_total{SELECTED}[$__rate_interval]))`,
				"{{pacer}}"}}},
		{Title: "Permits given back", Description: "Granted permits that callers gave back before their time.",
			Unit: "cps",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_returned_total{SELECTED}[$__rate_interval]))`,
				"{{pacer}}"}}},
		{Title: "Calls for permits without an answer",
			Description: "Calls for permits that the store did not answer, so that senders wait.",
			Unit:        "cps", Queries: []Query{
				{`sum by (pacer) (rate(capper_permits_errors_total{SELECTED}[$__rate_interval]))`, "{{pacer}}"}}},
		{Title: "Wait", Description: "Time from a grant to its last slot; 90 % are shorter.", Unit: "s",
			Queries: []Query{{`histogram_quantile(0.9, sum by (pacer, le) (rate(capper_permits_wait_seconds_bucket{SELECTED}[$__rate_interval])))`, "{{pacer}}"}}},
		{Title: "Queue", Description: "Time until the newest slot that an instance knows.", Unit: "s",
			Queries: []Query{{`max by (pacer) (capper_pacer_queue_seconds{SELECTED})`, "{{pacer}}"}}},
		{Title: "In use", Description: "Reserved and used share of the fullest limit, at the latest call.",
			Unit: "percentunit", Queries: []Query{{`max by (pacer) (capper_pacer_used_ratio{SELECTED})`, "{{pacer}}"}}},
		{Title: "Records of permits",
			Description: "Remembered requests and message logs, by client and for all clients.",
			Unit:        "short", Queries: []Query{
				{`max by (client, kind) (capper_permit_records{SELECTED})`, "{{client}} {{kind}}"},
				{`max by (kind) (capper_permit_records_in_all{SELECTED})`, "all clients: {{kind}}"}}},
		{Title: "Calls rejected with too_many_records",
			Description: "The client, or all clients together, have reached the bound of permit " +
				"records.", Unit: "cps",
			Queries: []Query{{`sum by (client) (rate(capper_permit_records_refused_total{SELECTED}[$__rate_interval]))`,
				"{{client}}"}}},
	}}
}

func recorded() Row {
	return Row{"Are decisions recorded?", []Panel{
		{Title: "Calls recorded",
			Description: "Calls recorded in the audit, and calls lost because audit.max_waiting was " +
				"full.", Unit: "cps",
			Queries: []Query{{`sum by (job) (rate(capper_audit_records_total{SELECTED}[$__rate_interval]))`,
				"{{job}} recorded"}, {`sum by (job) (rate(capper_audit_lost_total{SELECTED}[$__rate_interval]))`,
				"{{job}} lost"}}},
		{Title: "Audit records that wait for upload",
			Description: "Bytes of audit records on the local disk; audit.max_waiting bounds them.",
			Unit:        "bytes", Queries: []Query{{`capper_audit_waiting_bytes{SELECTED}`, "{{instance}}"}}},
		{Title: "Audit files that wait for upload",
			Description: "Complete files that wait. Files that wait for a quarter of an hour are not " +
				"uploaded.", Unit: "short", Queries: []Query{{`capper_audit_waiting_files{SELECTED}`,
				"{{instance}}"}}},
		{Title: "Audit records only in memory",
			Description: "Age of the oldest audit record that may not be on the disk.", Unit: "s",
			Width: 12, Red: 10, Queries: []Query{{`time() - (capper_audit_flushed_timestamp_seconds{SELECTED} > 0)`,
				"{{instance}}"}}},
		{Title: "Time since the latest upload",
			Description: "Time since the latest upload of an audit file. Instances upload a file every " +
				"audit.roll while there are calls.", Unit: "s", Width: 12,
			Queries: []Query{{`time() - (capper_audit_uploaded_timestamp_seconds{SELECTED} > 0)`, "{{instance}}"}}},
	}}
}

func room() Row {
	return Row{"Do memory, files and connections suffice?", []Panel{
		{Title: "Memory",
			Description: "Resident memory, and its bound by the formula in docs/operating.md, Memory.", Unit: "bytes",
			Queries: []Query{
				{`process_resident_memory_bytes{SELECTED}`, "{{instance}}"},
				{`capper_memory_configured_bytes{SELECTED} + 2 * capper_segments_memory_bytes{SELECTED} + capper_segments_pinned_bytes{SELECTED} + 40960 * capper_open_connections{SELECTED}`, "{{instance}} bound"},
			}},
		{Title: "Processor", Description: "Cores in use.", Unit: "none",
			Queries: []Query{{`rate(process_cpu_seconds_total{SELECTED}[$__rate_interval])`, "{{instance}}"}}},
		{Title: "File descriptors",
			Description: "Used share of the file descriptors of the process.", Unit: "percentunit",
			Red: .8, Queries: []Query{{`process_open_fds{SELECTED} / process_max_fds{SELECTED}`, "{{instance}}"}}},
		{Title: "Users being decided",
			Description: "Users in all calls at one time; server.max_in_flight_users bounds them.",
			Unit:        "short", Queries: []Query{{`capper_in_flight_users{SELECTED}`, "{{instance}}"}}},
		{Title: "Bodies and answers",
			Description: "Memory of undecoded bodies and of unwritten answers; server.bounds limits " +
				"both.", Unit: "bytes",
			Queries: []Query{{`capper_in_flight_body_bytes{SELECTED}`, "{{instance}} bodies"},
				{`capper_in_flight_answer_bytes{SELECTED}`, "{{instance}} answers"}}},
		{Title: "Calls rejected or aborted",
			Description: "Calls rejected or aborted because a budget was used up; callers retry them.", Unit: "cps",
			Queries: []Query{{`sum by (budget) (rate(capper_budget_refused_total{SELECTED}[$__rate_interval]))`,
				"{{budget}} rejected"}, {`sum by (budget) (rate(capper_budget_cut_total{SELECTED}[$__rate_interval]))`,
				"{{budget}} aborted"}}},
		{Title: "Connections",
			Description: "Open connections, and connections closed per second because too many were " +
				"open.",
			Unit: "short",
			Queries: []Query{{`capper_open_connections{SELECTED}`, "{{instance}} open"},
				{`rate(capper_connections_closed_total{SELECTED}[$__rate_interval])`, "{{instance}} closed per second"}}},
		{Title: "Goroutines", Description: "Number of goroutines. Growth for days is a leak.", Unit: "short",
			Queries: []Query{{`go_goroutines{SELECTED}`, "{{instance}}"}}},
		{Title: "Garbage collection", Description: "Heap in use, and GOMEMLIMIT if it is set.",
			Unit: "bytes",
			Queries: []Query{{`go_memstats_heap_inuse_bytes{SELECTED}`, "{{instance}} heap"},
				{`go_gc_gomemlimit_bytes{SELECTED} < 2 ^ 62`, "{{instance}} limit"}}},
	}}
}

func set() Row {
	return Row{"Which versions and configurations run?", []Panel{
		{Title: "Versions", Description: "Instances by version.", Unit: "short",
			Queries: []Query{{`count by (job, version, revision) (capper_build_info{SELECTED})`,
				"{{job}} {{version}} {{revision}}"}}},
		{Title: "Uptime", Description: "Time since the start of the process.", Unit: "s",
			Queries: []Query{{`time() - process_start_time_seconds{SELECTED}`, "{{instance}}"}}},
		{Title: "Configuration file rejected",
			Description: "1 while the file differs from the configuration in force; reloads by result.",
			Unit:        "short", Red: 1,
			Queries: []Query{{`capper_config_refused{SELECTED}`, "{{instance}}"},
				{`sum by (result) (increase(capper_config_reloads_total{SELECTED}[$__rate_interval]))`,
					"reloads {{result}}"}}},
		{Title: "Certificate: time left",
			Description: "Time until the certificate of the service expires; only with TLS.",
			Unit:        "s", Red: 604800, RedBelow: true,
			Queries: []Query{{`capper_tls_certificate_expiry_timestamp_seconds{SELECTED} - time()`, "{{instance}}"}}},
	}}
}
