import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

/** Names a server and how it is reached; parts of the URL are secret. */
export interface ServerAddress {
  /** May list several servers, `host1:port,host2:port`, of which one accepts writes. */
  readonly url: string;
  /** Absent when the URL decides. */
  readonly ssl?: true | { readonly ca: string } | undefined;
}

/** Returns the server that a configuration names; a relative path of its authority starts at `homeDir`. */
export function serverAddress(
  { url, ssl, sslCaPath }: { readonly url?: string | undefined; readonly ssl: boolean; readonly sslCaPath?: string | undefined },
  homeDir: string,
): ServerAddress {
  if (url === undefined) throw new Error('storage.url: is missing; driver "postgres" needs it');
  if (sslCaPath === undefined) return ssl ? { url, ssl } : { url };
  return { url, ssl: { ca: readAuthority(resolve(homeDir, sslCaPath)) } };
}

function readAuthority(file: string): string {
  try {
    const ca = readFileSync(file, 'utf8');
    // Without a certificate the server would be checked against no authority at all, and the reason would not be named.
    new X509Certificate(ca);
    return ca;
  } catch (error) {
    throw new Error(
      `storage.sslCaPath: cannot use ${file}: ${error instanceof Error ? error.message : String(error)}; expected certificates in PEM`,
      {
        cause: error,
      },
    );
  }
}

/** Returns a URL for each server that one lists, with the same user, database and parameters. */
export function serversOf(url: string): readonly string[] {
  const [, before = '', hosts = '', after = ''] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(url) ?? [];
  return hosts.includes(',') ? hosts.split(',').map((host) => `${before}${host}${after}`) : [url];
}
