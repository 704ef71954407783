/** Kinds of events that sub-agents, graphs and root runs cause; their census is a test of its own. */
export const isOfDelegation = (kind: string): boolean =>
  /^(?:graph|autonomy|capability|pipeline|orchestrate):|^session:(?:sub_agent|cross_send|ping_pong)/.test(kind);
