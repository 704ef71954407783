/** Milliseconds that one provider call may wait in each phase; the total is the request's own. */
export const deadlines = { connectMs: 10_000, firstByteMs: 60_000, idleMs: 60_000 } as const;
