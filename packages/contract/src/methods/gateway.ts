import * as z from 'zod';
import { method } from '../method.ts';

/** Records that are deleted at an age. */
export const keptRecords = [
  'modelCalls',
  'turns',
  'audit',
  'archives',
  'reasoning',
  'traces',
  'channelMessages',
  'channelDeliveries',
  'browserRecordings',
  'subAgentConversations',
] as const;
export type KeptRecordName = (typeof keptRecords)[number];

export const gateway = {
  'gateway.status': method({
    scope: 'admin',
    risk: 'read',
    summary: 'Returns the state of the daemon: version, process, memory, connections, turns, storage.',
    description: '`uptime` is in seconds, `memoryUsage` in bytes of resident memory.',
    params: () => z.strictObject({}),
    result: () =>
      z.strictObject({
        pid: z.int(),
        version: z.string(),
        uptime: z.number().min(0),
        memoryUsage: z.int().min(0),
        nodeVersion: z.string(),
        configPaths: z.array(z.string()),
        sections: z.array(z.string()),
        restartNeeded: z.array(z.string()).describe('Keys that were changed in the file and need a restart.'),
        configFault: z.string().optional().describe('Why the file cannot be used: the configuration in force is an earlier one.'),
        address: z.string().nullable().describe('Where it listens; null when `gateway.enabled` is false.'),
        connections: z.strictObject({ http: z.int().min(0), websocket: z.int().min(0) }),
        turns: z.strictObject({ running: z.int().min(0), queued: z.int().min(0) }),
        storage: z.strictObject({
          driver: z.enum(['sqlite', 'postgres']),
          path: z.string().describe('The file of SQLite; of PostgreSQL the URL without user and password.'),
          bytes: z.int().min(0),
          walBytes: z.int().min(0).describe('0 on PostgreSQL.'),
          schemaVersion: z.int().min(0),
          serverVersion: z.string().optional().describe('Of PostgreSQL.'),
          state: z.enum(['ok', 'read_only']),
          reason: z.string().optional().describe('Why it is read-only, where that is known.'),
          telemetryState: z
            .enum(['ok', 'read_only'])
            .optional()
            .describe('State of the second file of SQLite: while it is `read_only`, turns continue, and events and traces wait.'),
          telemetryBytes: z.int().min(0).optional().describe('The second file of SQLite: events and traces.'),
        }),
        disk: z
          .strictObject({ freeBytes: z.int().min(0) })
          .optional()
          .describe('What the daemon may still write on the disk of its data.'),
        jail: z
          .strictObject({
            state: z.enum(['ready', 'unavailable', 'unused']).describe('`unused`: nothing was run since the start, so it is not known.'),
            reason: z.string().optional().describe('Why there is none, and what helps.'),
            bounds: z.enum(['cgroup', 'rlimits']).optional().describe('How memory and processes are limited.'),
          })
          .optional()
          .describe('Where commands of agents run.'),
        retention: z
          .strictObject({
            lastAtMs: z.int().optional().describe('When old records were last deleted; absent before the first time.'),
            nextAtMs: z.int().describe('When it is due next.'),
            kept: z.array(
              z.strictObject({
                name: z.enum(keptRecords),
                days: z.int().min(1).describe('Age at which records are deleted.'),
                oldestAtMs: z.int().optional().describe('The oldest record that is kept.'),
                deleted: z.int().min(0).describe('Records deleted since the daemon started.'),
              }),
            ),
          })
          .optional()
          .describe('Deletion of old records.'),
        nodes: z
          .array(
            z.strictObject({
              self: z.literal(true).optional().describe('The daemon that answers.'),
              role: z.enum(['active', 'standby']),
              state: z.enum(['live', 'draining', 'lapsed']).describe('`lapsed`: it did not renew its lease in time.'),
              version: z.string(),
              address: z.string().nullable(),
              leaseLeftMs: z.int().describe('Milliseconds until its lease ends; negative when it has.'),
            }),
          )
          .optional()
          .describe('Daemons that share the database; absent with SQLite.'),
        replaced: z.literal(true).optional().describe('Another build of the program was installed: this one continues until it is restarted.'),
      }),
    examples: [
      {
        params: {},
        result: {
          pid: 4242,
          version: '0.1.0',
          uptime: 12.5,
          memoryUsage: 98000000,
          nodeVersion: 'v26.10.0',
          configPaths: ['/home/ada/.gatehouse/config.yaml'],
          sections: ['gateway'],
          restartNeeded: [],
          address: 'http://127.0.0.1:4766',
          connections: { http: 1, websocket: 0 },
          turns: { running: 0, queued: 0 },
          storage: { driver: 'sqlite', path: '/home/ada/.gatehouse/data/gatehouse.db', bytes: 4096, walBytes: 0, schemaVersion: 1, state: 'ok' },
        },
      },
    ],
    since: '0.1.0',
  }),
  'gateway.restart': method({
    scope: 'admin',
    risk: 'mutate',
    summary: 'Drains the daemon and starts it again with the configuration on disk.',
    description:
      'Answers first. The configuration is validated before anything stops; a bad one is an error and the daemon continues. `systemd` is true when a supervisor was detected. Repeated requests before the restart have no further effect.',
    params: () => z.strictObject({}),
    result: () => z.strictObject({ restarting: z.literal(true), systemd: z.boolean(), warning: z.string().optional() }),
    errors: ['precondition_failed'],
    examples: [{ params: {}, result: { restarting: true, systemd: false } }],
    since: '0.1.0',
  }),
};
