/** Kind of the durable work that delivers a message to its conversation; one item per answer. */
export const sendKind = 'session_send';

/** Returns the work key of an answer. */
export const answerKey = (sendId: string, leg: number): string => `${sendId}/${leg}`;
