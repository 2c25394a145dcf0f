package alerts

// Segments returns the dashboard about segments and about the publishing of segments.
func Segments() *Dashboard {
	return &Dashboard{
		UID: "capper-segments", Title: "capper: segments and publishing",
		Description: "Sizes and ages of segments and sets, and the builds that publish them. Red " +
			"lines are the thresholds of alerts.",
		Rows: []Row{published(), guarded(), contents(), followed(), changedByCalls()},
	}
}

const tooOld = 26 * 3600

func published() Row {
	return Row{"Did last night's build arrive?", []Panel{
		{Title: "Latest build",
			Description: "Time since a build last published or confirmed the segments.",
			Kind:        "stat", Unit: "s", Red: tooOld,
			Queries: []Query{{`time() - max by (job) (capper_segments_checked_timestamp_seconds{SELECTED})`,
				"{{job}}"}}},
		{Title: "Age of the generation",
			Description: "Age of the oldest generation that an instance uses. Builds can confirm a " +
				"generation for days.", Kind: "stat", Unit: "s",
			Queries: []Query{{`max by (job) (capper_segments_generation_age_seconds{SELECTED})`, "{{job}}"}}},
		{Title: "Missing sets", Description: "Sets that the configuration needs and the generation lacks; users are " +
			"unavailable.", Kind: "stat", Unit: "short", Red: 1,
			Queries: []Query{{`max by (job) (capper_segments_missing_sets{SELECTED})`, "{{job}}"}}},
		{Title: "Age by instance",
			Description: "Age of the generation in use. Instances with an older generation cannot read " +
				"the source.", Unit: "s", Width: 12,
			Queries: []Query{{`capper_segments_generation_age_seconds{SELECTED}`, "{{instance}}"}}},
		{Title: "Since the latest build",
			Description: "Time since the latest build that each instance knows.", Unit: "s", Width: 12,
			Red:     tooOld,
			Queries: []Query{{`time() - capper_segments_checked_timestamp_seconds{SELECTED}`, "{{instance}}"}}},
	}}
}

func guarded() Row {
	return Row{"Are suppressed sets complete and fresh?", []Panel{
		{
			Title: "Rejected generations",
			Description: "1 while instances reject the published generation, by reason: a set is " +
				"missing, users left a guarded set or lost their time zone, or changes by calls would end.",
			Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, reason) (capper_segments_refused{SELECTED})`, "{{job}} {{reason}}"}},
		},
		{
			Title: "Age of guarded sets",
			Description: "Time since the newest build that confirmed each suppressed or quiet set, and " +
				"the max_age of the configuration.",
			Unit: "s", Red: 48 * 3600,
			Queries: []Query{
				{`time() - max by (job, set) (capper_sets_confirmed_timestamp_seconds{SELECTED})`, "{{job}} {{set}}"},
				{`max by (job, set) (capper_sets_max_age_seconds{SELECTED})`, "{{job}} {{set}} max_age"},
			},
		},
		{
			Title: "Sets that are too old",
			Description: "1 while a set is older than its max_age; the sends that the set suppresses " +
				"are unavailable.",
			Unit: "short", Red: 1,
			Queries: []Query{{`max by (job, set) (capper_sets_too_old{SELECTED})`, "{{job}} {{set}}"}},
		},
		{
			Title: "Users who left guarded sets",
			Description: "Users who left a suppressed set or a set of quiet hours within a day, and " +
				"may receive messages again.",
			Unit: "short", Width: 12,
			Queries: []Query{{`max by (job, set) (increase(capper_sets_left_users_total{SELECTED}[1d]))`,
				"{{job}} {{set}}"}},
		},
		{
			Title: "Users without a time zone",
			Description: "Users of segments and sets who are in no time zone set, if a rule needs " +
				"users' time zones.",
			Unit: "short", Width: 12,
			Queries: []Query{{`max by (job) (capper_segments_zoneless_users{SELECTED})`, "{{job}}"}},
		},
	}}
}

func contents() Row {
	return Row{"Which users are in segments and sets?", []Panel{
		{Title: "Rules of time zones", Description: "Instances by their release of the time zone database.",
			Unit: "short", Queries: []Query{{`count by (version) (capper_zone_rules_info{SELECTED})`, "{{version}}"}}},
		{Title: "Users by segment",
			Description: "Users of each segment in the generation in use.", Unit: "short", Width: 12,
			Queries: []Query{{`max by (segment) (capper_segments_users{SELECTED})`, "{{segment}}"}}},
		{Title: "Users by set",
			Description: "Users of each set. A set of unsubscribed users that shrinks has probably " +
				"lost its end.", Unit: "short",
			Width: 12, Queries: []Query{{`max by (set) (capper_sets_users{SELECTED})`, "{{set}}"}}},
		{Title: "Segments, share of the day before",
			Description: "Users of each segment as a share of the number a day earlier: 100 % is no " +
				"change.", Unit: "percentunit", Width: 12, Red: .5, RedBelow: true,
			Queries: []Query{{`max by (segment) (capper_segments_users{SELECTED}) / max by (segment) (capper_segments_users{SELECTED} offset 1d)`, "{{segment}}"}}},
		{Title: "Sets, share of the day before",
			Description: "Users of each set as a share of the number a day earlier: 100 % is no " +
				"change.", Unit: "percentunit", Width: 12, Red: .8,
			RedBelow: true,
			Queries:  []Query{{`max by (set) (capper_sets_users{SELECTED}) / max by (set) (capper_sets_users{SELECTED} offset 1d)`, "{{set}}"}}},
	}}
}

func changedByCalls() Row {
	return Row{"Which sets do calls change, and do builds take the changes over?", []Panel{
		{Title: "Changes of sets by calls",
			Description: "Users that calls added to sets and removed from them, and calls that the bound of a " +
				"set refused.", Unit: "cps",
			Queries: []Query{
				{`sum by (set, kind) (rate(capper_set_changes_total{SELECTED}[$__rate_interval]))`, "{{set}} {{kind}}"},
				{`sum by (set) (rate(capper_set_changes_refused_total{SELECTED}[$__rate_interval]))`, "{{set}} refused"}}},
		{Title: "Live changes of sets",
			Description: "Users with a live change, by kind, and the used share of each set's bound.", Unit: "short",
			Queries: []Query{{`max by (set, kind) (capper_set_live_users{SELECTED})`, "{{set}} {{kind}}"},
				{`max by (set) (capper_set_live_used_ratio{SELECTED})`, "{{set}} used share"}}},
		{Title: "Age of live changes",
			Description: "Age of the oldest live change of each set. A build with a later as_of removes the change.",
			Unit:        "s",
			Queries:     []Query{{`max by (set) (capper_set_live_oldest_seconds{SELECTED})`, "{{set}}"}}},
	}}
}

func followed() Row {
	return Row{"Do instances load new generations, and how much memory do they use?", []Panel{
		{Title: "Refreshes of segments",
			Description: "Refreshes by result: swapped loaded a new generation, failed kept the " +
				"earlier one.", Unit: "cps",
			Queries: []Query{{`sum by (result) (rate(capper_segments_refresh_total{SELECTED}[$__rate_interval]))`,
				"{{result}}"}}},
		{Title: "Failed refreshes by instance",
			Description: "Failed refreshes; segments.error in /v1/status gives the reason.", Unit: "cps",
			Queries: []Query{{`sum by (instance) (rate(capper_segments_refresh_total{result="failed", SELECTED}[$__rate_interval]))`, "{{instance}}"}}},
		{Title: "Memory of segments",
			Description: "Memory of the generation in use, and of earlier generations that audiences " +
				"pinned. A refresh adds the next generation.", Unit: "bytes",
			Queries: []Query{{`capper_segments_memory_bytes{SELECTED}`, "{{instance}}"},
				{`capper_segments_pinned_bytes{SELECTED}`, "{{instance}} pinned"}}},
	}}
}
