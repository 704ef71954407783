import { hash } from 'node:crypto';

/** Returns a digest of length-delimited fields, so that none can spill into the next. */
export function digestOf(purpose: string, ...fields: readonly string[]): string {
  let text = '';
  for (const field of [`gatehouse channel ${purpose}`, '1', ...fields]) text += `${Buffer.byteLength(field)}:${field}`;
  return hash('sha256', text, 'base64url');
}

/** Returns the principal of a sender without a person. */
export function principalOfSender({ instance, senderId }: { readonly instance: string; readonly senderId: string }): string {
  return `channel:${digestOf('sender', instance, senderId)}`;
}
