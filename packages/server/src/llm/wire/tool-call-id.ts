import { createHash } from 'node:crypto';

export type ToolCallIdRule = 'any' | 'word' | 'alnum9';

const rules = { word: /^[a-zA-Z0-9_-]{1,64}$/, alnum9: /^[a-zA-Z0-9]{9}$/ };

/** Ids travel with the conversation between vendors, and some accept only their own format: others are replaced, equal ones alike. */
export function toolCallId(id: string, rule: ToolCallIdRule): string {
  if (rule === 'any' || rules[rule].test(id)) return id;
  const digest = createHash('sha256').update(id).digest('hex');
  return rule === 'alnum9' ? digest.slice(0, 9) : `call_${digest.slice(0, 24)}`;
}
