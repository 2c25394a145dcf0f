// Package browsertest tests pages in a real Chromium, as users see them: with the keyboard, in dark mode, on narrow
// screens, and with scripts disabled.
//
// All tests of a package share one Browser (a running Chromium). The Browser is a headless Chromium with a profile of
// its own, and stops when the tests have ended. Each Tab is a separate browser session, which does not share cookies
// with other tabs. A Tab observes all pages that it loads, beginning with the first request. The test that opened a Tab
// fails after an error in the browser's console, a violation of the content security policy, or a request to another
// website.
//
// The method Faults checks a page against some accessibility rules of WCAG 2.2, level AA. The file accessibility.js
// contains the accessibility rules, and tests check these rules with faulty pages.
//
// The tests wait for conditions, with time limits that are long enough for a busy machine.
package browsertest
