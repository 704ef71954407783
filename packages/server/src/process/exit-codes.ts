/** Exit codes of the daemon; numbers of sysexits.h where one fits. */
export const exitCodes = {
  ok: { code: 0, text: 'Stopped cleanly, after SIGTERM, SIGINT or SIGHUP.' },
  usage: { code: 64, text: 'An option of the command line is unknown or has a bad value.' },
  home: {
    code: 66,
    text: 'The home folder or a file in it cannot be read or written, belongs to another user, or others have access; or the keyring with the install key cannot be read.',
  },
  unavailable: { code: 69, text: 'The port is in use, or the address cannot be used for listening.' },
  internal: { code: 70, text: 'An internal error of Gatehouse; see the log.' },
  disk: { code: 73, text: 'The disk of the home folder is full, or has no inodes left: free some space or delete files, then start again.' },
  storage: {
    code: 74,
    text: 'The database is damaged, foreign, made by a newer version, imported into PostgreSQL or not completely imported, or cannot be opened.',
  },
  running: { code: 75, text: 'Another daemon uses the same home folder, perhaps in another container.' },
  lease: {
    code: 76,
    text: 'Another node took over, because this one could not renew its lease of the database in time. Started again (Restart=always), it is a standby.',
  },
  config: { code: 78, text: 'The configuration cannot be used; each problem is named with file, line and key.' },
  node: { code: 79, text: 'Node is too old.' },
  interrupted: { code: 130, text: 'A second SIGINT stopped it immediately.' },
  terminated: { code: 143, text: 'A second SIGTERM stopped it immediately.' },
} as const;
