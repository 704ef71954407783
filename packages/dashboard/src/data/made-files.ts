const makers: ReadonlySet<string> = new Set(['image_generate', 'tts_synthesize', 'browser']);
const sentence = /^The (?:image|speech|picture|PDF file) is in the workspace: (media\/[\w./-]+\.\w{1,5})(?: |$)/;

/** Whether results of a tool name files that people want to see. */
export function makesFiles(toolName: string | undefined): boolean {
  return toolName !== undefined && makers.has(toolName);
}

/** Returns the paths in a result of such a tool. A page could contain the sentence, but not at the beginning: its text is fenced. */
export function pathsOf(result: string): readonly string[] {
  const path = sentence.exec(result)?.[1];
  return path === undefined || path.includes('..') ? [] : [path];
}
