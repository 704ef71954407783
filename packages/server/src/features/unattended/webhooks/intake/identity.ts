import { hash } from 'node:crypto';

/** Length-delimited, so that no field can spill into its neighbour. */
export function digestFields(purpose: string, fields: readonly string[]): string {
  let text = '';
  for (const field of [`gatehouse webhook ${purpose}`, '1', ...fields]) text += `${Buffer.byteLength(field)}:${field}`;
  return hash('sha256', text, 'base64url');
}

/** Who the turns of a mapping belong to: made of its id alone, nothing that was sent has a part in it. */
export function principalOf(mappingId: string): string {
  return `webhook:${digestFields('principal', [mappingId])}`;
}

/** A key that is shown as it was rendered; `~` marks those that are not. */
const plainKey = /^[\x20-\x7d]{1,200}$/;

/** Address of the conversation of a rendered key of a mapping's principal, in the parts of a session key. Different keys have different ones, whatever they hold. */
export function keyOf(principalId: string, rendered: string) {
  const shown = rendered.toWellFormed().replace(/[^\x20-\x7d]/g, '_');
  const peerId = plainKey.test(rendered) ? rendered : `${shown.slice(0, 200)}~${digestFields('key', [rendered])}`;
  return { userId: principalId, channelId: 'webhook', peerId };
}
