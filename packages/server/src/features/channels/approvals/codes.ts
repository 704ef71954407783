import { createHmac } from 'node:crypto';
import type { Button } from '../../../channels/port.ts';

/** Without characters that look alike; 32, so that 5 bits choose one. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const length = 8;

/** Returns the code by which people name an approval in a chat: always the same for one, and not to be guessed without the key. */
export function codeOf(key: Buffer, approvalId: string): string {
  const mac = createHmac('sha256', key).update(approvalId).digest();
  return Array.from({ length }, (_, index) => alphabet[(mac[index] ?? 0) % alphabet.length]).join('');
}

/** Returns the buttons of a question; on platforms without them the commands are written. */
export const buttonsOf = (code: string): readonly Button[] => [
  { label: 'Approve', command: `/approve ${code}` },
  { label: 'Deny', command: `/deny ${code}` },
];

/** Returns the name of a gate for its code. */
export const gateName = ({ graphId, nodeId }: { readonly graphId: string; readonly nodeId: string }): string => `${graphId}/${nodeId}`;
