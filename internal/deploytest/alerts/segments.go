package alerts

// Segments returns the dashboard about segments and the publishing of segments.
func Segments() *Dashboard {
	return &Dashboard{
		UID: "capper-segments", Title: "capper: segments and publishing",
		Description: "Which users are in which segment, how old that is, and whether builds arrive. Red lines are " +
			"where alerts of deploy/prometheus begin.",
		Rows: []Row{published(), guarded(), contents(), followed()},
	}
}

const tooOld = 26 * 3600

func published() Row {
	return Row{"Did last night's build arrive?", []Panel{
		{Title: "Latest build", Description: "When a build last published, or found its segments live already: so " +
			"long ago.", Kind: "stat", Unit: "s", Red: tooOld,
			Queries: []Query{{`time() - max by (job) (capper_segments_checked_timestamp_seconds{SELECTED})`,
				"{{job}}"}}},
		{Title: "Age of the generation", Description: "Of the oldest that an instance uses. One that has not " +
			"changed for days is not old when builds found it live.", Kind: "stat", Unit: "s",
			Queries: []Query{{`max by (job) (capper_segments_generation_age_seconds{SELECTED})`, "{{job}}"}}},
		{Title: "Sets that are missing", Description: "The configuration needs them and the generation lacks them: " +
			"nobody is sent to.", Kind: "stat", Unit: "short", Red: 1,
			Queries: []Query{{`max by (job) (capper_segments_missing_sets{SELECTED})`, "{{job}}"}}},
		{Title: "Age by instance", Description: "Of the generation in use. Instances that stay behind cannot read " +
			"the source.", Unit: "s", Width: 12,
			Queries: []Query{{`capper_segments_generation_age_seconds{SELECTED}`, "{{instance}}"}}},
		{Title: "Since the latest build", Description: "As each instance has heard of it.", Unit: "s", Width: 12,
			Red:     tooOld,
			Queries: []Query{{`time() - capper_segments_checked_timestamp_seconds{SELECTED}`, "{{instance}}"}}},
	}}
}

func guarded() Row {
	return Row{"Are the lists of those who must not be sent to whole?", []Panel{
		{
			Title: "Refused generations",
			Description: "1 while the published generation is kept out of use, by reason: a set is missing, users " +
				"left a list, or users lost their time zone.",
			Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, reason) (capper_segments_refused{SELECTED})`, "{{job}} {{reason}}"}},
		},
		{
			Title: "Age of the lists",
			Description: "Time since the newest build that confirmed the users of each list. Beside it the max_age " +
				"of the configuration.",
			Unit: "s", Red: 48 * 3600,
			Queries: []Query{
				{`time() - max by (job, set) (capper_sets_confirmed_timestamp_seconds{SELECTED})`, "{{job}} {{set}}"},
				{`max by (job, set) (capper_sets_max_age_seconds{SELECTED})`, "{{job}} {{set}} max_age"},
			},
		},
		{
			Title: "Lists that are too old",
			Description: "1 while a list is older than its max_age: users of the sends that it concerns are " +
				"unavailable.",
			Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, set) (capper_sets_too_old{SELECTED})`, "{{job}} {{set}}"}},
		},
		{
			Title: "Users who left a list",
			Description: "Users who left a suppressed set, or one of quiet hours, within a day. Each of them may be " +
				"sent to again.",
			Unit: "short", Width: 12,
			Queries: []Query{{`max by (job, set) (increase(capper_sets_left_users_total{SELECTED}[1d]))`,
				"{{job}} {{set}}"}},
		},
		{
			Title:       "Users without a time zone",
			Description: "Users of any segment or set who are in no set of a zone, where a rule asks for users' zones.",
			Unit:        "short", Width: 12,
			Queries: []Query{{`max by (job) (capper_segments_zoneless_users{SELECTED})`, "{{job}}"}},
		},
	}}
}

func contents() Row {
	return Row{"Who is in it, and did that change?", []Panel{
		{Title: "Rules of time zones", Description: "Instances by the release of the time zone database in them.",
			Unit: "short", Queries: []Query{{`count by (version) (capper_zone_rules_info{SELECTED})`, "{{version}}"}}},
		{Title: "Users by segment", Description: "Of the generation in use.", Unit: "short", Width: 12,
			Queries: []Query{{`max by (segment) (capper_segments_users{SELECTED})`, "{{segment}}"}}},
		{Title: "Users by set", Description: "A list of the unsubscribed that falls is cut off.", Unit: "short",
			Width: 12, Queries: []Query{{`max by (set) (capper_sets_users{SELECTED})`, "{{set}}"}}},
		{Title: "Segments beside a day before", Description: "Users, as a share of those a day earlier: 100 % is no " +
			"change.", Unit: "percentunit", Width: 12, Red: .5, RedBelow: true,
			Queries: []Query{{`max by (segment) (capper_segments_users{SELECTED}) / max by (segment) (capper_segments_users{SELECTED} offset 1d)`, "{{segment}}"}}},
		{Title: "Sets beside a day before", Description: "The same of sets.", Unit: "percentunit", Width: 12, Red: .8,
			RedBelow: true,
			Queries:  []Query{{`max by (set) (capper_sets_users{SELECTED}) / max by (set) (capper_sets_users{SELECTED} offset 1d)`, "{{set}}"}}},
	}}
}

func followed() Row {
	return Row{"Do instances follow, and what does it take?", []Panel{
		{Title: "Looks at the source", Description: "By result: swapped took a new generation, failed kept the one " +
			"before.", Unit: "cps",
			Queries: []Query{{`sum by (result) (rate(capper_segments_refresh_total{SELECTED}[$__rate_interval]))`,
				"{{result}}"}}},
		{Title: "Failing looks by instance", Description: "segments.error in /v1/status says why.", Unit: "cps",
			Queries: []Query{{`sum by (instance) (rate(capper_segments_refresh_total{result="failed", SELECTED}[$__rate_interval]))`, "{{instance}}"}}},
		{Title: "Memory of segments", Description: "Of the generation in use, and of earlier ones that audiences " +
			"pinned. During a refresh the next one comes to that.", Unit: "bytes",
			Queries: []Query{{`capper_segments_memory_bytes{SELECTED}`, "{{instance}}"},
				{`capper_segments_pinned_bytes{SELECTED}`, "{{instance}} pinned"}}},
	}}
}
