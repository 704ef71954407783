import { hash } from 'node:crypto';

/** Returns a digest of length-delimited fields, so that none can spill into the next. */
export function digestFields(purpose: string, fields: readonly string[]): string {
  let text = '';
  for (const field of [`gatehouse webhook ${purpose}`, '1', ...fields]) text += `${Buffer.byteLength(field)}:${field}`;
  return hash('sha256', text, 'base64url');
}

/** Returns the principal of a mapping's turns, derived only from its id and not from anything sent. */
export function principalOf(mappingId: string): string {
  return `webhook:${digestFields('principal', [mappingId])}`;
}

/** Matches keys shown as rendered; `~` marks all others. */
const plainKey = /^[\x20-\x7d]{1,200}$/;

/** Returns the session key parts of the conversation for a rendered key of a mapping's principal. Different keys always differ. */
export function keyOf(principalId: string, rendered: string) {
  const shown = rendered.toWellFormed().replace(/[^\x20-\x7d]/g, '_');
  const peerId = plainKey.test(rendered) ? rendered : `${shown.slice(0, 200)}~${digestFields('key', [rendered])}`;
  return { userId: principalId, channelId: 'webhook', peerId };
}
