/** The kinds of durable work of sub-agents. In a separate module, because the storage threads need them. */
export const runWork = 'subagent';
export const announceWork = 'announce';
