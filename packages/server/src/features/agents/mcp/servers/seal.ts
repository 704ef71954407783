import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import * as z from 'zod';
import { parseJson } from '../../../../kernel/json.ts';

const Headers = z.record(z.string(), z.string());

/** Encrypts stored headers of servers: AES-256-GCM under a key of the installation, bound to the server's name. */
export interface Seal {
  close(name: string, headers: Readonly<Record<string, string>>): string;
  /** Returns undefined for headers sealed under another key or name. */
  open(name: string, sealed: string): Readonly<Record<string, string>> | undefined;
}

export function createSeal(key: Buffer): Seal {
  return {
    close(name, headers) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(name));
      const text = Buffer.concat([cipher.update(JSON.stringify(headers), 'utf8'), cipher.final()]);
      return Buffer.concat([nonce, cipher.getAuthTag(), text]).toString('base64url');
    },
    open(name, sealed) {
      const bytes = Buffer.from(sealed, 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12)).setAAD(Buffer.from(name)).setAuthTag(bytes.subarray(12, 28));
        return Headers.parse(parseJson(Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8')));
      } catch {
        return undefined;
      }
    },
  };
}
