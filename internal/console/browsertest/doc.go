// Package browsertest looks at pages as people do: in a real Chromium, with its
// keyboard, its dark mode, its narrow screens, and with scripts off.
//
// A Browser is one Chromium for all tests of a package, started headless with a
// profile of its own and ended with them. Each Tab is a session of its own: no
// cookie of one is seen by another. A tab watches what its pages do from the
// first request on, and its test fails at its end when there was an error in the
// console, a violation of the content security policy, or a request to anybody
// else than the service (see Tab).
//
// Faults asks a page what accessibility.js knows of WCAG 2.2, level AA. It is a
// script of ours, asked itself with pages that are wrong.
//
// Waiting is for conditions, with a deadline that a busy machine keeps.
package browsertest
