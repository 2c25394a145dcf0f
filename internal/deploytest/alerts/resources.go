package alerts

func permitted() Row {
	return Row{"Do senders get their permits?", []Panel{
		{Title: "Permits granted", Description: "By each pacer that they were asked of.", Unit: "cps",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_granted_total{SELECTED}[$__rate_interval]))`,
				"{{pacer}}"}}},
		{Title: "Permits refused", Description: "By the pacer that limited the call. For long more than are " +
			"granted: it is saturated.", Unit: "cps",
			Queries: []Query{{`sum by (pacer) (rate(capper_permits_refused_total{SELECTED}[$__rate_interval]))`,
				"{{pacer}}"}}},
		{Title: "Calls for permits without an answer", Description: "The store did not answer: senders stand still.",
			Unit: "cps", Queries: []Query{
				{`sum by (pacer) (rate(capper_permits_errors_total{SELECTED}[$__rate_interval]))`, "{{pacer}}"}}},
		{Title: "Wait", Description: "From a grant to its last slot; 9 of 10 are shorter.", Unit: "s",
			Queries: []Query{{`histogram_quantile(0.9, sum by (pacer, le) (rate(capper_permits_wait_seconds_bucket{SELECTED}[$__rate_interval])))`, "{{pacer}}"}}},
		{Title: "Queue", Description: "Until the newest slot that an instance has seen.", Unit: "s",
			Queries: []Query{{`max by (pacer) (capper_pacer_queue_seconds{SELECTED})`, "{{pacer}}"}}},
		{Title: "In use", Description: "Share of the fullest limit, as of the latest call.", Unit: "percentunit",
			Queries: []Query{{`max by (pacer) (capper_pacer_used_ratio{SELECTED})`, "{{pacer}}"}}},
		{Title: "Records of permits", Description: "Remembered requests, and logs of messages, by client and of all " +
			"clients.", Unit: "short", Queries: []Query{
			{`max by (client, kind) (capper_permit_records{SELECTED})`, "{{client}} {{kind}}"},
			{`max by (kind) (capper_permit_records_in_all{SELECTED})`, "all clients: {{kind}}"}}},
		{Title: "Calls refused for their records", Description: "The client, or all clients together, have as many " +
			"records as are kept.", Unit: "cps",
			Queries: []Query{{`sum by (client) (rate(capper_permit_records_refused_total{SELECTED}[$__rate_interval]))`,
				"{{client}}"}}},
	}}
}

func recorded() Row {
	return Row{"Are decisions recorded?", []Panel{
		{Title: "Calls recorded", Description: "And those that were not, as too much waited.", Unit: "cps",
			Queries: []Query{{`sum by (job) (rate(capper_audit_records_total{SELECTED}[$__rate_interval]))`,
				"{{job}} recorded"}, {`sum by (job) (rate(capper_audit_lost_total{SELECTED}[$__rate_interval]))`,
				"{{job}} lost"}}},
		{Title: "On the disk, not at its place", Description: "Bytes of records; audit.max_waiting bounds them.",
			Unit: "bytes", Queries: []Query{{`capper_audit_waiting_bytes{SELECTED}`, "{{instance}}"}}},
		{Title: "Complete files that wait", Description: "For the place of the audit. More than none for a quarter " +
			"of an hour: they do not arrive.", Unit: "short", Queries: []Query{{`capper_audit_waiting_files{SELECTED}`,
			"{{instance}}"}}},
		{Title: "In memory alone", Description: "Age of the oldest record that may not be on the disk.", Unit: "s",
			Width: 12, Red: 10, Queries: []Query{{`time() - (capper_audit_flushed_timestamp_seconds{SELECTED} > 0)`,
				"{{instance}}"}}},
		{Title: "Latest file at its place", Description: "So long ago. Files go there when they are complete, every " +
			"audit.roll while there are calls.", Unit: "s", Width: 12,
			Queries: []Query{{`time() - (capper_audit_uploaded_timestamp_seconds{SELECTED} > 0)`, "{{instance}}"}}},
	}}
}

func room() Row {
	return Row{"Is there room?", []Panel{
		{Title: "Memory", Description: "What is resident, and the sum of all bounds, above which it should not be " +
			"(docs/operating.md, Memory).", Unit: "bytes",
			Queries: []Query{
				{`process_resident_memory_bytes{SELECTED}`, "{{instance}}"},
				{`capper_memory_configured_bytes{SELECTED} + 2 * capper_segments_memory_bytes{SELECTED} + capper_segments_pinned_bytes{SELECTED} + 40960 * capper_open_connections{SELECTED}`, "{{instance}} bound"},
			}},
		{Title: "Processor", Description: "Cores in use.", Unit: "none",
			Queries: []Query{{`rate(process_cpu_seconds_total{SELECTED}[$__rate_interval])`, "{{instance}}"}}},
		{Title: "File descriptors", Description: "Share in use of what the process may have.", Unit: "percentunit",
			Red: .8, Queries: []Query{{`process_open_fds{SELECTED} / process_max_fds{SELECTED}`, "{{instance}}"}}},
		{Title: "Users being decided", Description: "At one time; server.max_in_flight_users bounds them.",
			Unit: "short", Queries: []Query{{`capper_in_flight_users{SELECTED}`, "{{instance}}"}}},
		{Title: "Bodies and answers", Description: "Memory of bodies until they are decoded and of answers until " +
			"they are written; server.bounds bounds them.", Unit: "bytes",
			Queries: []Query{{`capper_in_flight_body_bytes{SELECTED}`, "{{instance}} bodies"},
				{`capper_in_flight_answer_bytes{SELECTED}`, "{{instance}} answers"}}},
		{Title: "Calls refused or cut off", Description: "As a budget was short; callers repeat them.", Unit: "cps",
			Queries: []Query{{`sum by (budget) (rate(capper_budget_refused_total{SELECTED}[$__rate_interval]))`,
				"{{budget}} refused"}, {`sum by (budget) (rate(capper_budget_cut_total{SELECTED}[$__rate_interval]))`,
				"{{budget}} cut off"}}},
		{Title: "Connections", Description: "Open ones, and those closed a second as there were too many.",
			Unit: "short",
			Queries: []Query{{`capper_open_connections{SELECTED}`, "{{instance}} open"},
				{`rate(capper_connections_closed_total{SELECTED}[$__rate_interval])`, "{{instance}} closed a second"}}},
		{Title: "Goroutines", Description: "What grows for days is a leak.", Unit: "short",
			Queries: []Query{{`go_goroutines{SELECTED}`, "{{instance}}"}}},
		{Title: "Collector", Description: "Memory after the latest collection, and GOMEMLIMIT where it is set.",
			Unit: "bytes",
			Queries: []Query{{`go_memstats_heap_inuse_bytes{SELECTED}`, "{{instance}} heap"},
				{`go_gc_gomemlimit_bytes{SELECTED} < 2 ^ 62`, "{{instance}} limit"}}},
	}}
}

func set() Row {
	return Row{"What runs, with which configuration?", []Panel{
		{Title: "Versions", Description: "Instances by version.", Unit: "short",
			Queries: []Query{{`count by (job, version, revision) (capper_build_info{SELECTED})`,
				"{{job}} {{version}} {{revision}}"}}},
		{Title: "Up for", Description: "Since the start of the process.", Unit: "s",
			Queries: []Query{{`time() - process_start_time_seconds{SELECTED}`, "{{instance}}"}}},
		{Title: "Configuration file refused", Description: "1 while the file is not what is in force, and changes " +
			"by result.", Unit: "short", Red: 1,
			Queries: []Query{{`capper_config_refused{SELECTED}`, "{{instance}}"},
				{`sum by (result) (increase(capper_config_reloads_total{SELECTED}[$__rate_interval]))`,
					"reloads {{result}}"}}},
		{Title: "Certificate good for", Description: "Until the certificate that is served ends; only with TLS.",
			Unit: "s", Red: 604800, RedBelow: true,
			Queries: []Query{{`capper_tls_certificate_expiry_timestamp_seconds{SELECTED} - time()`, "{{instance}}"}}},
	}}
}
