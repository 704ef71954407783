import type { LogLevel } from '@gatehouse/contract';
import { type Logger as Pino, pino } from 'pino';
import type * as z from 'zod';
import type { Log } from './log.ts';
import { LogRing, type RecentLines } from './log-ring.ts';
import { createFileSink, type LogSink } from './log-sink.ts';
import { toLogText } from './log-text.ts';

type Level = z.output<typeof LogLevel>;

export interface Logger {
  /** The log of the daemon itself; modules get theirs from `log.module(name)`. */
  readonly log: Log;
  /** Takes effect at once, until the next start. Returns false when no module has this name. */
  setLevel(level: Level, module?: string): boolean;
  /** Resets all levels and the format to those of a start. */
  reset(levels: LogLevels): void;
  /** Names of the modules that have asked for their log. */
  modules(): string[];
  /** The newest lines, whatever becomes of standard error. */
  readonly recent: RecentLines;
  /** Writes waiting lines at once. */
  flush(): void;
}

export interface LogLevels {
  readonly level: Level;
  /** Level per module, wins over `level`. */
  readonly modules?: Readonly<Record<string, Level>>;
  /** `auto`, which is the default: text on a terminal, JSON otherwise. */
  readonly format?: LogFormat;
}

export type LogFormat = 'auto' | 'json' | 'text';

export interface LoggerOptions extends LogLevels {
  /** What standard error is, when it is a terminal. */
  readonly terminal?: { readonly color: boolean } | undefined;
  /** Every line passes it before it is written. */
  readonly redact: (line: string) => string;
  /** Destination of lines; standard error in batches by default. */
  readonly write?: (line: string) => void;
  /** Id of the first line in `recent`. */
  readonly firstLineId?: number;
}

/**
 * Structured log, one JSON object per line: `level`, `time` (milliseconds since the epoch), `module`, the fields, `msg`; as
 * text for people when `format` says so.
 */
export function createLogger(options: LoggerOptions): Logger {
  const { write } = options;
  const sink: LogSink =
    write === undefined
      ? createFileSink(2, (dropped) => root.warn({ dropped }, 'Log lines were dropped: the reader of the log is too slow'))
      : { write, flush() {} };
  const recent = new LogRing(options.firstLineId);
  let format = options.format ?? 'auto';
  const show = (line: string) =>
    format === 'text' || (format === 'auto' && options.terminal !== undefined) ? toLogText(line, options.terminal?.color === true) : line;
  const root: Pino = pino(
    {
      level: options.level,
      base: null,
      formatters: { level: (level) => ({ level }) },
      serializers: { err: pino.stdSerializers.err, error: pino.stdSerializers.err },
    },
    {
      write(line: string) {
        const redacted = options.redact(line);
        recent.push(redacted);
        sink.write(show(redacted));
      },
    },
  );
  const modules = new Map<string, Pino>();
  /** A level set for a named module survives changes of the common level. */
  const ownLevel = new Map<string, Level>(Object.entries(options.modules ?? {}));
  let common = options.level;

  function module(name: string): Pino {
    const known = modules.get(name);
    if (known !== undefined) return known;
    const child = root.child({ module: name }, { level: ownLevel.get(name) ?? common });
    modules.set(name, child);
    return child;
  }

  function toLog(of: Pino): Log {
    return {
      fatal: (fields, message) => of.fatal(fields, message),
      error: (fields, message) => of.error(fields, message),
      warn: (fields, message) => of.warn(fields, message),
      info: (fields, message) => of.info(fields, message),
      debug: (fields, message) => of.debug(fields, message),
      trace: (fields, message) => of.trace(fields, message),
      enabled: (level) => of.isLevelEnabled(level),
      module: (name) => toLog(module(name)),
    };
  }

  return {
    log: toLog(root),
    setLevel(level, name) {
      if (name !== undefined) {
        const one = modules.get(name);
        if (one === undefined) return false;
        ownLevel.set(name, level);
        one.level = level;
        return true;
      }
      common = level;
      root.level = level;
      for (const [each, child] of modules) if (!ownLevel.has(each)) child.level = level;
      return true;
    },
    reset(levels) {
      ownLevel.clear();
      for (const [name, level] of Object.entries(levels.modules ?? {})) ownLevel.set(name, level);
      common = levels.level;
      format = levels.format ?? 'auto';
      root.level = common;
      for (const [name, child] of modules) child.level = ownLevel.get(name) ?? common;
    },
    modules: () => [...modules.keys()].toSorted(),
    recent,
    flush: () => sink.flush(),
  };
}
