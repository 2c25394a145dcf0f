// Package browsertest tests pages as users see them: in a real Chromium, with its keyboard, dark mode and narrow
// screens, and with scripts off.
//
// All tests of a package share one Browser, a headless Chromium with its own profile that ends with the tests. Each
// Tab is a separate session and sees no cookies of another tab. A tab watches its pages from the first request on.
// Its test fails if there was an error in the console, a violation of the content security policy, or a request to
// another site (see Tab).
//
// Faults checks a page against some rules of WCAG 2.2, level AA. The rules are in accessibility.js, which has tests
// with faulty pages.
//
// Tests wait for conditions, with a deadline that a busy machine meets.
package browsertest
