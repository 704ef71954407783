import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/** Encrypts texts for the database: AES-256-GCM under a key of the installation, bound to a name. */
export interface Seal {
  close(name: string, text: string): string;
  /** Returns undefined for a text sealed under another key or name. */
  open(name: string, sealed: string): string | undefined;
}

const nonceBytes = 12;
const tagBytes = 16;

export function createSeal(key: Buffer): Seal {
  return {
    close(name, text) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name));
      const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url');
    },
    open(name, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      const textAt = nonceBytes + tagBytes;
      if (bytes.length < textAt) return undefined;
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, nonceBytes), { authTagLength: tagBytes })
          .setAAD(Buffer.from(name))
          .setAuthTag(bytes.subarray(nonceBytes, textAt));
        return Buffer.concat([decipher.update(bytes.subarray(textAt)), decipher.final()]).toString('utf8');
      } catch {
        return undefined;
      }
    },
  };
}
