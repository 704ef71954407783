export type StartRefusal =
  /** Another daemon uses the same folder. */
  | 'locked'
  /** The file was written by a newer program. */
  | 'newer_schema'
  /** The recorded migrations are not those of this program. */
  | 'changed_migration'
  /** The data of the home folder was imported into PostgreSQL. */
  | 'imported'
  /** The database holds a part of a SQLite home. */
  | 'import_unfinished'
  /** The database was written with another install key. */
  | 'other_key'
  /** The clock of the machine differs too much from that of the database. */
  | 'clock_off'
  /** The schema can be changed only when the active daemon, which is older, has ended. */
  | 'awaits_active'
  /** The file exists but does not belong to this program. */
  | 'foreign_database'
  /** SQLite cannot read the file as a database. */
  | 'damaged'
  /** No space is left on the disk. */
  | 'disk_full'
  /** The folder or file cannot be opened or written. */
  | 'unusable';

/** The storage refuses to start; the message is for the person at the terminal and says what to do. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly reason: StartRefusal;

  constructor(reason: StartRefusal, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}
