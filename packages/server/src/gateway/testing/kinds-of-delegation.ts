/** True for events of sub-agents, graphs and root runs, which a separate test checks. */
export const isOfDelegation = (kind: string): boolean =>
  /^(?:graph|autonomy|capability|pipeline|orchestrate):|^session:(?:sub_agent|cross_send|ping_pong)/.test(kind);
