package frame

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// The function "functions" returns the functions that the templates of console pages can call.
func functions(asset func(string) string) template.FuncMap {
	return template.FuncMap{"asset": asset, "number": number, "per": PerSecond, "span": Span, "list": List,
		"clock": clock, "legible": legible}
}

// The function number formats a whole number with commas as thousands separators.
func number(n int64) string { return grouped(strconv.FormatInt(n, 10)) }

// The function "grouped" adds commas as thousands separators to a decimal number.
func grouped(text string) string {
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	whole, fraction, broken := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if broken {
		whole += "." + fraction
	}
	return sign + whole
}

// Whole formats a count as a whole number.
func Whole(n float64) string { return number(int64(n)) }

// PerSecond formats a rate per second, with more decimals for a smaller rate.
func PerSecond(rate float64) string {
	switch {
	case rate == 0 || rate >= 100:
		return grouped(strconv.FormatFloat(math.Round(rate), 'f', 0, 64))
	case rate >= 1:
		return strconv.FormatFloat(rate, 'f', 1, 64)
	}
	return strconv.FormatFloat(rate, 'g', 2, 64)
}

// The variable "units" lists the units of durations, beginning with the longest.
var units = []struct {
	length time.Duration
	name   string
}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}}

// The function Span formats a duration in words, for example "24 hours", "1 day and 6 hours". The function Span formats
// a duration below one second in milliseconds.
func Span(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	for i, unit := range units {
		n := d / unit.length
		if n == 0 {
			continue
		}
		rest := d % unit.length
		if i+1 == len(units) || rest < units[i+1].length {
			return some(int64(n), unit.name)
		}
		return some(int64(n), unit.name) + " and " + some(int64(rest/units[i+1].length), units[i+1].name)
	}
	return ""
}

func some(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(n) + " " + what + "s"
}

// The function "roughly" formats a duration as a whole number of the largest unit that fits, such as "3 hours".
func roughly(d time.Duration) string {
	for _, unit := range units {
		if n := d / unit.length; n > 0 {
			return some(int64(n), unit.name)
		}
	}
	return ""
}

// The function Relative formats a time in words, relative to the current time.
func Relative(now, at time.Time) string {
	switch text := roughly(at.Sub(now).Abs()); {
	case at.IsZero():
		return "at a time that is not known"
	case text == "":
		return "now"
	case at.Before(now):
		return text + " ago"
	default:
		return "in " + text
	}
}

// The function "when" formats a time in words, relative to the current time, as HTML. The exact time is visible on
// hover and on focus, and in screen readers.
func when(now, at time.Time) template.HTML {
	if at.IsZero() {
		return "never"
	}
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time class="when" datetime="%s" tabindex="0">%s<span> %s</span></time>`, //nolint:gosec // the text contains no input
		at.Format(time.RFC3339), Relative(now, at), at.Format("Mon 2 Jan 2006, 15:04:05 UTC")))
}

// The function clock formats a time as date and time of day in UTC, as HTML. In the browser, a script of the page adds
// the local time of the visitor.
func clock(at time.Time) template.HTML {
	at = at.UTC()
	return template.HTML(fmt.Sprintf(`<time class="clock" datetime="%s">%s</time>`, //nolint:gosec // no input
		at.Format(time.RFC3339), at.Format("Mon 2 Jan, 15:04 UTC")))
}

// The function "legible" replaces invisible characters, and characters that reverse the direction of text, by visible
// marks. If a text consists only of blanks, legible() replaces the blanks, too.
func legible(text string) string {
	blank := strings.TrimSpace(text) == ""
	if !blank && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case blank && r == ' ':
			out.WriteRune('␣')
		case hidden(r) || blank:
			fmt.Fprintf(&out, "[U+%04X]", r)
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Cf, r) && r != '\u200d' ||
		r == unicode.ReplacementChar
}

// The function List joins words to an enumeration, for example "push, email and sms".
func List(words []string) string {
	switch n := len(words); n {
	case 0:
		return ""
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}
