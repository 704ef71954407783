import { createHmac, randomBytes } from 'node:crypto';

const shortest = 32;
/** Placeholders that people leave in an example. */
const placeholder =
  /change[-_ ]?me|place[-_ ]?holder|your[-_ ]?(own[-_ ]?)?(secret|token|key|password)|(replace|insert|put)[-_ ]?(this|me|your|here)|example[-_ ]?(secret|token|key)|^<.*>$|^\$\{.*\}$|^(undefined|null)+$/i;

export function newSecret(): string {
  return `gh_${randomBytes(48).toString('base64url')}`;
}

/** Returns base64url of HMAC-SHA-256 under the pepper of the installation: random secrets need no slow hash. */
export function digestOf(pepper: Buffer, secret: string): string {
  return createHmac('sha256', pepper).update(secret).digest('base64url');
}

/** Returns the fault of a secret that an operator chose; undefined when it is good enough. */
export function secretFault(secret: string): string | undefined {
  if (secret.trim().length < shortest) return `must have at least ${shortest} characters`;
  if (placeholder.test(secret.trim())) return 'is a placeholder: choose a random one';
  return undefined;
}

/** Whether a secret is long enough and yet easy to guess; it works, and the daemon warns at start. */
export function isUniform(secret: string): boolean {
  return new Set(secret).size < 8;
}
