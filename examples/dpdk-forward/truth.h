/* Exact counts of a trace, to which estimates are compared. */
#ifndef TRUTH_H
#define TRUTH_H

#include <stddef.h>
#include <stdint.h>

#include "counter.h"
#include "trace.h"

/* The flows that are compared. */
enum { LARGEST = 100 };

/* How well a sketch knows the largest flows. */
struct accuracy {
	/* All flows of the trace, and how many of the largest are compared: fewer only if there are fewer. */
	size_t flows, compared;
	/* The mean of |estimate - count| / count over them, and how many the sketch names among its largest. */
	double relative_error;
	size_t named;
};

/* Compares the estimates of the largest flows of a trace that was sent `loops` times. */
struct accuracy truth_compare(const struct trace *trace, uint64_t loops, const struct counter *counter);

#endif
