import * as z from 'zod';

/** Names the engine that keeps the data. */
export const StorageConfig = z
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
      .describe('Connect to PostgreSQL by TLS only, and check the certificate of the server. `sslmode` in `url` does the same.'),
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
  .refine(({ driver, url }) => driver === 'sqlite' || url !== undefined, { path: ['url'], message: 'is missing; driver "postgres" needs it' });
export type StorageConfig = z.output<typeof StorageConfig>;
