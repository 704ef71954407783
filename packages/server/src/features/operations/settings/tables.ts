import type { VersionOrigin } from './api.ts';

/** Rows of `config_version`. */
interface ConfigVersionTable {
  readonly number: number;
  readonly digest: string;
  readonly sealedText: string;
  readonly atMs: number;
  readonly principalId: string;
  readonly origin: VersionOrigin;
  readonly summary: string;
  readonly section: string | null;
  readonly key: string | null;
  readonly traceId: string | null;
}

/** Rows of `config_file`. */
interface ConfigFileTable {
  readonly homeId: string;
  readonly version: number;
  readonly digest: string;
}

declare module '../../../kernel/db/tables.ts' {
  interface Tables {
    readonly configVersion: ConfigVersionTable;
    readonly configFile: ConfigFileTable;
  }
}
