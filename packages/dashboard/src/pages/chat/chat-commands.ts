/** Something that the chat does itself when a message is `/name` and what follows. */
export interface ChatCommand {
  readonly name: string;
  /** Shown after the name, such as `TITLE`. */
  readonly argument?: string;
  readonly text: string;
  readonly run: (argument: string) => void;
}
