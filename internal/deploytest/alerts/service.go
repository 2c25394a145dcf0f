package alerts

// Service returns the dashboard about the decisions, speed, store and resources of the service.
func Service() *Dashboard {
	return &Dashboard{
		UID: "capper-service", Title: "capper: service",
		Description: "Decisions by outcome, limit and client, and their speed. Red lines are the " +
			"thresholds of alerts.",
		Rows: []Row{served(), decided(), fast(), stored(), permitted(), recorded(), room(), set()},
	}
}

func served() Row {
	return Row{"Does every call get its decisions?", []Panel{
		{Title: "Ready instances", Description: "Instances whose /readyz answers 200.", Kind: "stat",
			Unit: "short", Width: 6, Red: 1, RedBelow: true,
			Queries: []Query{{`sum(capper_ready{SELECTED})`, "ready"}}},
		{Title: "Unavailable users",
			Description: "Share of users without a decision, over five minutes. Callers retry them; " +
				"the objective is 0.1 % over a month.", Kind: "stat", Unit: "percentunit", Width: 6,
			Red:     .0144,
			Queries: []Query{{`sum(rate(capper_users_total{outcome="unavailable", SELECTED}[5m])) / (sum(rate(capper_users_total{SELECTED}[5m])) > 0)`, "unavailable"}}},
		{Title: "Calls slower than 2.5 s",
			Description: "Share of the calls to /v1/filter, over five minutes. The objective is 1 % " +
				"over a month.", Kind: "stat", Unit: "percentunit", Width: 6, Red: .144,
			Queries: []Query{{`1 - sum(rate(capper_http_request_seconds_bucket{route="/v1/filter", le="2.5", SELECTED}[5m])) / (sum(rate(capper_http_request_seconds_count{route="/v1/filter", SELECTED}[5m])) > 0)`, "slow"}}},
		{Title: "Alerts", Description: "Firing alerts; docs/monitoring.md has a section for each.", Kind: "stat",
			Unit: "short", Width: 6, Red: 1,
			Queries: []Query{{`count by (alertname) (ALERTS{alertname=~"Capper.+", alertstate="firing", job=~"$job|"})`,
				"{{alertname}}"}}},
		{Title: "Error budget in use: users",
			Description: "Speed at which unavailable users use the error budget: 1 uses a month's " +
				"budget in a month, 14.4 in two days.", Unit: "none", Width: 12,
			Red: 14.4,
			Queries: []Query{{`capper:unavailable_users:ratio_rate1h{JOB} / 0.001`, "{{job}} 1 h"},
				{`capper:unavailable_users:ratio_rate6h{JOB} / 0.001`, "{{job}} 6 h"},
				{`capper:unavailable_users:ratio_rate3d{JOB} / 0.001`, "{{job}} 3 d"}}},
		{Title: "Error budget in use: latency",
			Description: "Speed at which calls to /v1/filter over 2.5 s use the error budget: 1 uses a " +
				"month's budget in a month.", Unit: "none", Width: 12, Red: 14.4,
			Queries: []Query{{`capper:slow_filters:ratio_rate1h{JOB} / 0.01`, "{{job}} 1 h"},
				{`capper:slow_filters:ratio_rate6h{JOB} / 0.01`, "{{job}} 6 h"},
				{`capper:slow_filters:ratio_rate3d{JOB} / 0.01`, "{{job}} 3 d"}}},
	}}
}

func decided() Row {
	return Row{"Which users may receive messages, and which limits deny the others?", []Panel{
		{Title: "Users by outcome",
			Description: "Users of filter calls that record sends, once for each call. Unavailable " +
				"users have no decision.", Unit: "cps", Stacked: true,
			Queries: []Query{{`sum by (outcome) (rate(capper_users_total{SELECTED}[$__rate_interval]))`,
				"{{outcome}}"}}},
		{Title: "Denied by limit",
			Description: "Denied users by limit, or by suppression, holdout and quiet hours.",
			Unit:        "cps", Stacked: true,
			Queries: []Query{{`sum by (segment, limit) (rate(capper_users_total{outcome="denied", SELECTED}[$__rate_interval]))`, "{{segment}} {{limit}}"}}},
		{Title: "Allowed share by segment",
			Description: "Share of the requested users of each segment who may receive a message. No " +
				"user, or suddenly every user, points to a wrong publish or configuration.",
			Unit:    "percentunit",
			Queries: []Query{{`sum by (segment) (rate(capper_users_total{outcome=~"allowed|replayed", SELECTED}[$__rate_interval])) / (sum by (segment) (rate(capper_users_total{SELECTED}[$__rate_interval])) > 0)`, "{{segment}}"}}},
		{Title: "Suppressed by set", Description: "Users denied because a suppressed set contains them.",
			Unit: "cps",
			Queries: []Query{{`sum by (set) (rate(capper_suppressed_users_total{SELECTED}[$__rate_interval]))`,
				"{{set}}"}}},
		{Title: "Shadow limits", Description: "Allowed users whom a shadow limit would have denied.",
			Unit:    "cps",
			Queries: []Query{{`sum by (segment, limit) (rate(capper_shadow_denied_users_total{SELECTED}[$__rate_interval]))`, "{{segment}} {{limit}}"}}},
		{Title: "Imported sends", Description: "Imported sends of other systems, by result.",
			Unit: "cps",
			Queries: []Query{{`sum by (result) (rate(capper_imported_sends_total{SELECTED}[$__rate_interval]))`,
				"{{result}}"}}},
		{Title: "Users by client and channel",
			Description: "Users of filter calls, by client and channel.", Unit: "cps", Stacked: true,
			Queries: []Query{{`sum by (client, channel) (rate(capper_client_users_total{SELECTED}[$__rate_interval]))`,
				"{{client}} {{channel}}"}}},
		{Title: "Calls with enforce: false",
			Description: "Filter calls that no limit denies, by client. Refused: the key lacks the " +
				"scope exempt.", Unit: "cps", Queries: []Query{
				{`sum by (client, result) (rate(capper_client_exempt_calls_total{SELECTED}[$__rate_interval]))`,
					"{{client}} {{result}}"}}},
	}}
}

func fast() Row {
	return Row{"How fast are calls, and which fail?", []Panel{
		{Title: "Calls by route", Description: "Requests per second.", Unit: "reqps",
			Queries: []Query{{`sum by (route) (rate(capper_http_requests_total{SELECTED}[$__rate_interval])) > 0`,
				"{{route}}"}}},
		{Title: "Answers that are not 200",
			Description: "Answers by status: 429 is a client's rate, 503 a budget or the store, 500 a " +
				"fault of the program.", Unit: "reqps",
			Queries: []Query{{`sum by (status) (rate(capper_http_requests_total{status!~"2..", SELECTED}[$__rate_interval]))`, "{{status}}"}}},
		{Title: "Duration of /v1/filter",
			Description: "Time from the request's header to the end of the answer.", Unit: "s",
			Red:     2.5,
			Queries: quantiles(`capper_http_request_seconds_bucket{route="/v1/filter", SELECTED}`)},
		{Title: "Duration of calls to the store", Description: "99 % of the calls are faster.", Unit: "s",
			Queries: []Query{{`histogram_quantile(0.99, sum by (op, le) (rate(capper_store_call_seconds_bucket{SELECTED}[$__rate_interval])))`, "{{op}}"}}},
		{Title: "Calls to the store by result",
			Description: "Partial: some users have no decision. Error: no user has one.",
			Unit:        "cps",
			Queries: []Query{{`sum by (op, result) (rate(capper_store_calls_total{SELECTED}[$__rate_interval])) > 0`,
				"{{op}} {{result}}"}}},
		{Title: "Errors of the store by kind",
			Description: "Failed attempts, most of which succeed on retry, and users left undecided. " +
				"docs/api.md explains the kinds.", Unit: "cps",
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
	return Row{"Does the store work?", []Panel{
		{Title: "State", Description: "Instances by their state of the store.", Unit: "short",
			Queries: []Query{{`sum by (store, state) (capper_store_state{SELECTED})`, "{{store}} {{state}}"}}},
		{Title: "Shards", Description: "Redis masters, masters whose users are unavailable, and partitions on slots " +
			"that no node serves.", Unit: "short",
			Queries: []Query{{`max by (job) (capper_store_shards{SELECTED})`, "{{job}} shards"},
				{`max by (job) (capper_store_degraded_shards{SELECTED})`, "{{job}} degraded"},
				{`max by (job) (capper_store_unserved_partitions{SELECTED})`, "{{job}} partitions without a node"}}},
		{Title: "Working replicas",
			Description: "Working replicas of each master. At the needed number none is to spare; " +
				"below it, users are unavailable.", Unit: "short",
			Queries: []Query{{`min by (job, node) (capper_store_replicas{SELECTED})`, "{{node}}"},
				{`min by (job, node) (capper_store_replicas{SELECTED} - capper_store_replicas_known{SELECTED}) < 0`,
					"{{node}} down"}, {`max by (job) (capper_store_replicas_needed{SELECTED})`, "{{job}} needed"}}},
		{Title: "Partitions in quarantine",
			Description: "Partitions (64ths of the users) that are unavailable because their records " +
				"are incomplete; 1 if the store's own records are gone.", Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, reason) (capper_store_barred_partitions{SELECTED})`, "{{job}} {{reason}}"},
				{`max by (job) (capper_store_records_gone{SELECTED})`, "{{job}} records gone"}}},
		{
			Title: "Broken promises of Redis servers",
			Description: "Partitions whose users are unavailable until an operator accepts a possible " +
				"loss: their server may evict keys, has evicted keys, or has no append-only " +
				"file.",
			Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, node, reason) (capper_store_promise_broken{SELECTED})`,
				"{{node}} {{reason}}"}},
		},
		{
			Title: "Certificates of Redis servers: time left",
			Description: "Time until the certificate of each Redis server expires; only with TLS. Open " +
				"connections survive the end.",
			Unit: "s", Red: 604800, RedBelow: true,
			Queries: []Query{{`min by (job, node) (capper_store_certificate_expiry_timestamp_seconds{SELECTED}) - time()`, "{{node}}"}},
		},
		{Title: "Instances of the store",
			Description: "Instances that share the store, and how many other instances differ from " +
				"each.",
			Unit: "short",
			Queries: []Query{{`max by (job) (capper_store_instances{SELECTED})`, "{{job}} instances"},
				{`max by (job, key) (capper_store_instances_differing{SELECTED})`, "{{job}} differ in {{key}}"}}},
		{Title: "Time since the last heartbeat",
			Description: "Time for which an instance could not renew its entry in Redis.",
			Unit:        "s", Red: 60,
			Queries: []Query{{`capper_store_unheard_seconds{SELECTED}`, "{{instance}}"}}},
		{Title: "Age of the store",
			Description: "Time since the empty store was created. It drops if the store is emptied: " +
				"then every user may receive messages again.", Unit: "s",
			Queries: []Query{{`time() - max by (job) (capper_store_made_timestamp_seconds{SELECTED})`, "{{job}}"}}},
		{Title: "Rates applied by one instance",
			Description: "Calls to which an instance alone applied the client's rate, because it could " +
				"not reach the shared rates.", Unit: "cps",
			Queries: []Query{{`sum by (instance) (rate(capper_rate_fallbacks_total{SELECTED}[$__rate_interval]))`,
				"{{instance}}"}}},
		{Title: "Counts of messages lost", Description: "Users of answers that /v1/messages lacks.",
			Unit: "cps",
			Queries: []Query{{`sum by (instance) (rate(capper_message_answers_lost_total{SELECTED}[$__rate_interval]))`,
				"{{instance}}"}}},
	}}
}
