/** The kinds of durable work of sub-agents. Apart from the rest, because the storage threads need them. */
export const runWork = 'subagent';
export const announceWork = 'announce';
