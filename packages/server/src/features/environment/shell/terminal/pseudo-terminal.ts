/** Size of a terminal in characters. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/** Private folder of the helper; every jail has its own /tmp. */
const folder = '/tmp/.terminal';

/**
 * Runs `script` with a pipe as its input, and a loop that decodes what the daemon sends: `t` and text in escapes of printf, or `r` and
 * arguments of stty. The pseudo-terminal exists in the jail only, so no program inside can reach a terminal of the host. When the program
 * ends, everything else in the jail is killed: bubblewrap would wait for it.
 */
const helper = `umask 077
mkdir ${folder} && mkfifo ${folder}/in || exit 126
exec 3<&0
while IFS= read -r line; do
  case $line in
    r*) stty -F "$(cat ${folder}/tty)" \${line#r} ;;
    *) printf '%b' "\${line#t}" ;;
  esac
done <&3 >${folder}/in 2>/dev/null &
script -qefc "$1" /dev/null <${folder}/in 3<&-
code=$?
kill -s KILL -- -1 2>/dev/null
exit $code`;

/** Returns the command that runs a program on a pseudo-terminal of this size. */
export function onTerminal(argv: readonly string[], { cols, rows }: TerminalSize): readonly [string, ...string[]] {
  return ['sh', '-c', helper, 'terminal', `tty >${folder}/tty; stty sane rows ${rows} cols ${cols}; exec ${argv.map(quote).join(' ')}`];
}

const quote = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/** Encodes text as a line for the helper. */
export function encodeInput(text: string): string {
  let line = 't';
  for (const byte of Buffer.from(text)) line += isPlain(byte) ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, '0')}`;
  return `${line}\n`;
}

/** Digits would continue an escape before them. */
const isPlain = (byte: number) => (byte >= 65 && byte <= 90) || (byte >= 97 && byte <= 122) || byte === 32;

export const encodeResize = ({ cols, rows }: TerminalSize): string => `rrows ${rows} cols ${cols}\n`;
