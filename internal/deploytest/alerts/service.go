package alerts

// Service returns the dashboard about the service's work for its callers.
func Service() *Dashboard {
	return &Dashboard{
		UID: "capper-service", Title: "capper: service",
		Description: "Who is decided, how fast, and by what. Red lines are where alerts of deploy/prometheus begin.",
		Rows:        []Row{served(), decided(), fast(), stored(), permitted(), recorded(), room(), set()},
	}
}

func served() Row {
	return Row{"Is everybody served?", []Panel{
		{Title: "Instances that ask for calls", Description: "Instances whose /readyz answers 200.", Kind: "stat",
			Unit: "short", Width: 6, Red: 1, RedBelow: true,
			Queries: []Query{{`sum(capper_ready{SELECTED})`, "ready"}}},
		{Title: "Unavailable users", Description: "Share of the users who were not decided, in five minutes. " +
			"Callers repeat them; the objective is 0.1 % over a month.", Kind: "stat", Unit: "percentunit", Width: 6,
			Red:     .0144,
			Queries: []Query{{`sum(rate(capper_users_total{outcome="unavailable", SELECTED}[5m])) / (sum(rate(capper_users_total{SELECTED}[5m])) > 0)`, "unavailable"}}},
		{Title: "Calls slower than 2.5 s", Description: "Share of the calls of /v1/filter, in five minutes. The " +
			"objective is 1 % over a month.", Kind: "stat", Unit: "percentunit", Width: 6, Red: .144,
			Queries: []Query{{`1 - sum(rate(capper_http_request_seconds_bucket{route="/v1/filter", le="2.5", SELECTED}[5m])) / (sum(rate(capper_http_request_seconds_count{route="/v1/filter", SELECTED}[5m])) > 0)`, "slow"}}},
		{Title: "Alerts", Description: "Alerts that fire; docs/monitoring.md has a section for each.", Kind: "stat",
			Unit: "short", Width: 6, Red: 1,
			Queries: []Query{{`count by (alertname) (ALERTS{alertname=~"Capper.+", alertstate="firing", job=~"$job|"})`,
				"{{alertname}}"}}},
		{Title: "Error budget in use: users", Description: "How many times faster than the objective allows users " +
			"are unavailable: 1 uses the month's budget in a month, 14.4 in two days.", Unit: "none", Width: 12,
			Red: 14.4,
			Queries: []Query{{`capper:unavailable_users:ratio_rate1h{JOB} / 0.001`, "{{job}} 1 h"},
				{`capper:unavailable_users:ratio_rate6h{JOB} / 0.001`, "{{job}} 6 h"},
				{`capper:unavailable_users:ratio_rate3d{JOB} / 0.001`, "{{job}} 3 d"}}},
		{Title: "Error budget in use: latency", Description: "The same of calls of /v1/filter that took longer " +
			"than 2.5 s.", Unit: "none", Width: 12, Red: 14.4,
			Queries: []Query{{`capper:slow_filters:ratio_rate1h{JOB} / 0.01`, "{{job}} 1 h"},
				{`capper:slow_filters:ratio_rate6h{JOB} / 0.01`, "{{job}} 6 h"},
				{`capper:slow_filters:ratio_rate3d{JOB} / 0.01`, "{{job}} 3 d"}}},
	}}
}

func decided() Row {
	return Row{"Who may receive, and what holds the others back?", []Panel{
		{Title: "Users by outcome", Description: "Users of filter calls that record, each once a call. Unavailable " +
			"ones were not decided.", Unit: "cps", Stacked: true,
			Queries: []Query{{`sum by (outcome) (rate(capper_users_total{SELECTED}[$__rate_interval]))`,
				"{{outcome}}"}}},
		{Title: "Denied by limit", Description: "Also suppressed, holdout and quiet hours.", Unit: "cps", Stacked: true,
			Queries: []Query{{`sum by (segment, limit) (rate(capper_users_total{outcome="denied", SELECTED}[$__rate_interval]))`, "{{segment}} {{limit}}"}}},
		{Title: "Allowed share by segment", Description: "Of the users of each segment that were asked for, those " +
			"who may receive. Nobody, or suddenly everybody, is a wrong publish or a wrong configuration.",
			Unit:    "percentunit",
			Queries: []Query{{`sum by (segment) (rate(capper_users_total{outcome=~"allowed|replayed", SELECTED}[$__rate_interval])) / (sum by (segment) (rate(capper_users_total{SELECTED}[$__rate_interval])) > 0)`, "{{segment}}"}}},
		{Title: "Suppressed by set", Description: "Users denied because they are in a set that is suppressed.",
			Unit: "cps",
			Queries: []Query{{`sum by (set) (rate(capper_suppressed_users_total{SELECTED}[$__rate_interval]))`,
				"{{set}}"}}},
		{Title: "Shadow limits", Description: "Allowed users whom a limit in the shadow would have denied.",
			Unit:    "cps",
			Queries: []Query{{`sum by (segment, limit) (rate(capper_shadow_denied_users_total{SELECTED}[$__rate_interval]))`, "{{segment}} {{limit}}"}}},
		{Title: "Imported sends", Description: "Sends made elsewhere that were taken over, by what became of them.",
			Unit: "cps",
			Queries: []Query{{`sum by (result) (rate(capper_imported_sends_total{SELECTED}[$__rate_interval]))`,
				"{{result}}"}}},
		{Title: "Users by client and channel", Description: "Who asks.", Unit: "cps", Stacked: true,
			Queries: []Query{{`sum by (client, channel) (rate(capper_client_users_total{SELECTED}[$__rate_interval]))`,
				"{{client}} {{channel}}"}}},
		{Title: "Calls past limits", Description: "Filter calls with enforce false, by client; refused: the key " +
			"lacks the scope exempt.", Unit: "cps", Queries: []Query{
			{`sum by (client, result) (rate(capper_client_exempt_calls_total{SELECTED}[$__rate_interval]))`,
				"{{client}} {{result}}"}}},
	}}
}

func fast() Row {
	return Row{"How fast are calls, and which fail?", []Panel{
		{Title: "Calls by route", Description: "Requests a second.", Unit: "reqps",
			Queries: []Query{{`sum by (route) (rate(capper_http_requests_total{SELECTED}[$__rate_interval])) > 0`,
				"{{route}}"}}},
		{Title: "Answers that are not 200", Description: "By status: 429 is a client's rate, 503 a budget or a " +
			"store, 500 a fault of the program.", Unit: "reqps",
			Queries: []Query{{`sum by (status) (rate(capper_http_requests_total{status!~"2..", SELECTED}[$__rate_interval]))`, "{{status}}"}}},
		{Title: "Duration of /v1/filter", Description: "From the request's header to the end of the answer.", Unit: "s",
			Red:     2.5,
			Queries: quantiles(`capper_http_request_seconds_bucket{route="/v1/filter", SELECTED}`)},
		{Title: "Duration of calls of the store", Description: "99 of 100 calls are faster.", Unit: "s",
			Queries: []Query{{`histogram_quantile(0.99, sum by (op, le) (rate(capper_store_call_seconds_bucket{SELECTED}[$__rate_interval])))`, "{{op}}"}}},
		{Title: "Calls of the store by result", Description: "partial: some users were not decided; error: none was.",
			Unit: "cps",
			Queries: []Query{{`sum by (op, result) (rate(capper_store_calls_total{SELECTED}[$__rate_interval])) > 0`,
				"{{op}} {{result}}"}}},
		{Title: "Errors of the store by kind", Description: "Attempts that failed, most of which a repetition mends " +
			"within the call, and users left undecided. docs/api.md says what the kinds are.", Unit: "cps",
			Queries: []Query{{`sum by (kind) (rate(capper_store_errors_total{SELECTED}[$__rate_interval])) > 0`,
				"{{kind}}"}}},
	}}
}

func quantiles(bucket string) (list []Query) {
	for _, q := range []string{"0.5", "0.9", "0.99"} {
		list = append(list, Query{`histogram_quantile(` + q + `, sum by (le) (rate(` + bucket + `[$__rate_interval])))`,
			q})
	}
	return list
}

func stored() Row {
	return Row{"Is the store whole?", []Panel{
		{Title: "State", Description: "Instances by the state in which they see the store.", Unit: "short",
			Queries: []Query{{`sum by (store, state) (capper_store_state{SELECTED})`, "{{store}} {{state}}"}}},
		{Title: "Shards", Description: "Masters, those of them whose users are unavailable, and parts of the users " +
			"on slots that no node serves.", Unit: "short",
			Queries: []Query{{`max by (job) (capper_store_shards{SELECTED})`, "{{job}} shards"},
				{`max by (job) (capper_store_degraded_shards{SELECTED})`, "{{job}} degraded"},
				{`max by (job) (capper_store_unserved_partitions{SELECTED})`, "{{job}} partitions without a node"}}},
		{Title: "Working replicas", Description: "Of each master. At what is needed there is none to spare; below " +
			"it its users are unavailable.", Unit: "short",
			Queries: []Query{{`min by (job, node) (capper_store_replicas{SELECTED})`, "{{node}}"},
				{`min by (job, node) (capper_store_replicas{SELECTED} - capper_store_replicas_known{SELECTED}) < 0`,
					"{{node}} away"}, {`max by (job) (capper_store_replicas_needed{SELECTED})`, "{{job}} needed"}}},
		{Title: "Barred partitions", Description: "Of 64 parts of all users, those that are unavailable as what was " +
			"recorded of them is not whole; and whether the store's own records are gone.", Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, reason) (capper_store_barred_partitions{SELECTED})`, "{{job}} {{reason}}"},
				{`max by (job) (capper_store_records_gone{SELECTED})`, "{{job}} records gone"}}},
		{
			Title: "Broken promises of Redis servers",
			Description: "Partitions whose users are unavailable until an operator accepts what their server did: " +
				"it evicts keys, has evicted some, or has no append-only file.",
			Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, node, reason) (capper_store_promise_broken{SELECTED})`,
				"{{node}} {{reason}}"}},
		},
		{
			Title: "Certificates of Redis servers good for",
			Description: "Time until the certificate that each Redis server shows to new connections ends; only " +
				"with TLS. Connections that stand outlive it.",
			Unit: "s", Red: 604800, RedBelow: true,
			Queries: []Query{{`min by (job, node) (capper_store_certificate_expiry_timestamp_seconds{SELECTED}) - time()`, "{{node}}"}},
		},
		{Title: "Instances of the store", Description: "Instances that share it, and how many others differ from each.",
			Unit: "short",
			Queries: []Query{{`max by (job) (capper_store_instances{SELECTED})`, "{{job}} instances"},
				{`max by (job, key) (capper_store_instances_differing{SELECTED})`, "{{job}} differ in {{key}}"}}},
		{Title: "Not heard of for", Description: "For how long an instance could not renew what instances share.",
			Unit: "s", Red: 60,
			Queries: []Query{{`capper_store_unheard_seconds{SELECTED}`, "{{instance}}"}}},
		{Title: "Age of the store", Description: "Since when sends are recorded. It begins anew when the store was " +
			"wiped out: then everybody may receive again.", Unit: "s",
			Queries: []Query{{`time() - max by (job) (capper_store_made_timestamp_seconds{SELECTED})`, "{{job}}"}}},
		{Title: "Rates kept apart", Description: "Calls whose client's rate this instance kept alone, as the shared " +
			"ones could not be reached.", Unit: "cps",
			Queries: []Query{{`sum by (instance) (rate(capper_rate_fallbacks_total{SELECTED}[$__rate_interval]))`,
				"{{instance}}"}}},
		{Title: "Counts of messages lost", Description: "Users in answers that are missing from /v1/messages.",
			Unit: "cps",
			Queries: []Query{{`sum by (instance) (rate(capper_message_answers_lost_total{SELECTED}[$__rate_interval]))`,
				"{{instance}}"}}},
	}}
}
