/** What became of a message: `turn`, or why it started none. */
export const verdicts = ['turn', 'pairing', 'not_allowed', 'disabled', 'bot', 'suspended', 'full'] as const;
export type Verdict = (typeof verdicts)[number];
