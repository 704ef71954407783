import { hkdfSync, randomBytes } from 'node:crypto';
import { createSeal, type Seal } from '../../../../kernel/seal.ts';

const saltBytes = 32;

/**
 * Encrypts values of the secret store, bound to the name of the secret. Each has a separate key, derived from that of the installation with
 * a random salt, so that no nonce can repeat under one key.
 */
export function createSecretSeal(key: Buffer): Seal {
  const sealOf = (salt: Buffer) => createSeal(Buffer.from(hkdfSync('sha256', key, salt, 'gatehouse/secret-value/v1', 32)));
  return {
    close(name, value) {
      const salt = randomBytes(saltBytes);
      return `${salt.toString('base64url')}.${sealOf(salt).close(name, value)}`;
    },
    open(name, sealed) {
      const [salt = '', rest = ''] = sealed.split('.');
      return sealOf(Buffer.from(salt, 'base64url')).open(name, rest);
    },
  };
}
