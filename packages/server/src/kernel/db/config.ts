import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** Parameters of a URL that win over the options of a connection: with `sslmode=disable` there would be no TLS. */
const tlsParameters: ReadonlySet<string> = new Set(['ssl', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat']);

/** Returns those that a URL names. */
export function tlsParametersOf(url: string): readonly string[] {
  const query = /\?([^#]*)/.exec(url)?.[1] ?? '';
  return [...new URLSearchParams(query).keys()].filter((name) => tlsParameters.has(name));
}

/** Names the engine that keeps the data. */
export const StorageConfig = once(() =>
  z
    .strictObject({
      driver: z
        .enum(['sqlite', 'postgres'])
        .default('sqlite')
        .describe('Where data lives: a file in the home folder, or a PostgreSQL server, which several daemons can share.'),
      url: z
        .string()
        .refine((text) => /^postgres(?:ql)?:\/\/./.test(text), 'expected postgres://user:password@host:port/database')
        .optional()
        .describe(
          'The PostgreSQL database, as postgres://user:password@host:port/database; "${DATABASE_URL}" takes it from the environment. Of several servers, host1:port,host2:port, the one that accepts writes is used.',
        )
        .meta({ secret: true }),
      ssl: z
        .boolean()
        .default(false)
        .describe(
          'Connect to PostgreSQL by TLS only, and check the certificate of the server. `sslmode=verify-full` in `url` does the same; not both.',
        ),
      sslCaPath: z
        .string()
        .min(1)
        .optional()
        .describe(
          'PEM file of the authority that signs the certificate of the server; relative paths start at the home folder. The system knows others.',
        ),
      poolSize: z.int().min(4).max(100).default(8).describe('Connections to PostgreSQL that this daemon keeps open at most.'),
      sharedPath: z
        .string()
        .min(1)
        .optional()
        .describe(
          'Folder for the files that a standby continues with: workspaces, media and skills. Relative paths start at the home folder, which holds them when absent.',
        ),
      minFreeBytes: z
        .int()
        .min(0)
        .default(33_554_432)
        .describe('With less free space than this on a disk of the home folder, no new work that writes is accepted; 0 turns the check off.'),
    })
    .refine(({ driver, url }) => driver === 'sqlite' || url !== undefined, { path: ['url'], message: 'is missing; driver "postgres" needs it' })
    .superRefine(({ url, ssl, sslCaPath }, { addIssue }) => {
      const names = ssl || sslCaPath !== undefined ? tlsParametersOf(url ?? '') : [];
      if (names.length > 0)
        addIssue({
          code: 'custom',
          path: ['url'],
          message: `names ${names.join(', ')}, with which ssl and sslCaPath would have no effect: say how to use TLS in one place`,
        });
    }),
);
export type StorageConfig = z.output<ReturnType<typeof StorageConfig>>;
