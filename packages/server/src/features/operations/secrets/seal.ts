import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

/** Encrypts values of the secret store: AES-256-GCM under a separate key for each value, bound to the secret's name. */
export interface SecretSeal {
  close(name: string, value: string): string;
  /** Returns undefined for a value sealed under another key or name. */
  open(name: string, sealed: string): string | undefined;
}

const saltBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** `key` is that of the installation for this purpose. Each value's key is derived from it with a random salt, so that no nonce can repeat under one key. */
export function createSecretSeal(key: Buffer): SecretSeal {
  const keyOf = (salt: Buffer) => Buffer.from(hkdfSync('sha256', key, salt, 'gatehouse/secret-value/v1', 32));
  return {
    close(name, value) {
      const [salt, nonce] = [randomBytes(saltBytes), randomBytes(nonceBytes)];
      const cipher = createCipheriv('aes-256-gcm', keyOf(salt), nonce).setAAD(Buffer.from(name));
      const text = Buffer.concat([cipher.update(value, 'utf8'), cipher.final()]);
      return Buffer.concat([salt, nonce, cipher.getAuthTag(), text]).toString('base64url');
    },
    open(name, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      const [nonceAt, tagAt, textAt] = [saltBytes, saltBytes + nonceBytes, saltBytes + nonceBytes + tagBytes];
      if (bytes.length < textAt) return undefined;
      try {
        const decipher = createDecipheriv('aes-256-gcm', keyOf(bytes.subarray(0, nonceAt)), bytes.subarray(nonceAt, tagAt), {
          authTagLength: tagBytes,
        })
          .setAAD(Buffer.from(name))
          .setAuthTag(bytes.subarray(tagAt, textAt));
        return Buffer.concat([decipher.update(bytes.subarray(textAt)), decipher.final()]).toString('utf8');
      } catch {
        return undefined;
      }
    },
  };
}
