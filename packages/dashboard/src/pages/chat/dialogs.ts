// One file of the build: none of these is needed before somebody opens it.
export { ConversationDialog } from './conversation-dialog.tsx';
export { ModelSelects } from './model-selects.tsx';
export { PromptsDialog } from './prompts-dialog.tsx';
export { SystemPromptDialog } from './system-prompt-dialog.tsx';
