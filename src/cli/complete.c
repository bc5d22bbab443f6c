/* cli/complete.c - completion scripts for four shells, made from the option rows. They are complete in
 * themselves: pressing Tab never starts winml. */
#include "cli/program.h"
#include "cli/rows.h"

static const char *const shells[] = {"bash", "zsh", "fish", "powershell"};

static bool run_completion(const struct wml_call *call, struct wml_err *err)
{
    return wml_fail(err, WML_E_INTERNAL, "%s is answered by the driver", call->command->name);
}

static const struct wml_opt completion_opts[] = {
    {.kind = WML_KIND_GROUP, .group = wml_opts_common},
    WML_OPT_END,
};

const struct wml_command wml_command_completion = {
    .name = "completion",
    .group = "Shell",
    .summary = "Print the completion script of a shell",
    .about = "SHELL is bash, zsh, fish or powershell. The script completes commands, options, choices and file "
             "names; it never starts winml.",
    .examples = "source <(winml completion bash)  # in ~/.bashrc\n"
                "source <(winml completion zsh)  # in ~/.zshrc, after compinit\n"
                "winml completion fish > ~/.config/fish/completions/winml.fish\n"
                "winml completion powershell | Out-String | Invoke-Expression  # in $PROFILE",
    .opts = completion_opts,
    .args_size = sizeof(struct wml_common_args),
    .formats = "text|json",
    .run = run_completion,
};

struct script {
    const struct wml_program *p;
    struct wml_buf *out;
    struct wml_commands all;
};

static bool is_shown(const struct wml_opt *o)
{
    return !(o->flags & (WML_OPT_HIDDEN | WML_OPT_IGNORED));
}

/* Long and short names with their dashes, separated by `sep`; forms: also --no-. */
static void put_names(const struct wml_opt *o, const char *sep, bool forms, struct wml_buf *out)
{
    if (o->letter) wml_buf_fmt(out, "-%c%s", o->letter, sep);
    wml_buf_fmt(out, "--%s", o->name);
    struct wml_str rest = wml_str(o->alias), alias;
    while (wml_str_split(&rest, ' ', &alias))
        if (alias.len) wml_buf_fmt(out, "%s--%.*s", sep, WML_ARG(alias));
    if (!forms || o->kind != WML_KIND_FLAG || o->flags & WML_OPT_SWITCH) return;
    if (o->no_letter) wml_buf_fmt(out, "%s-%c", sep, o->no_letter);
    wml_buf_fmt(out, "%s--no-%s", sep, o->name);
}

static void put_words(const char *choices, const char *sep, struct wml_buf *out)
{
    struct wml_str rest = wml_str(choices), word;
    for (const char *before = ""; wml_str_split(&rest, '|', &word); before = sep)
        wml_buf_fmt(out, "%s%.*s", before, WML_ARG(word));
}

/* Text inside '...' of a shell; `also` are characters that get a backslash. */
static void put_quoted(const char *text, const char *quote, const char *also, struct wml_buf *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            wml_buf_cstr(out, quote);
        else if (strchr(also, *text))
            wml_buf_fmt(out, "\\%c", *text);
        else
            wml_buf_char(out, *text == '\n' ? ' ' : *text);
    }
}

/* --- bash --- */

static void bash_values(const struct wml_command *c, struct wml_buf *out)
{
    const struct wml_opt *o;
    wml_buf_cstr(out, "            case \"$prev\" in\n");
    for (size_t i = 0; (o = wml_opt_row(c->opts, i, NULL)); i++) {
        if (!wml_row_takes_value(o)) continue;
        const char *choices = wml_command_choices(c, o);
        wml_buf_cstr(out, "                ");
        put_names(o, "|", false, out);
        if (choices) {
            wml_buf_cstr(out, ") COMPREPLY=($(compgen -W '");
            put_words(choices, " ", out);
            wml_buf_cstr(out, "' -- \"$cur\")); return ;;\n");
        } else if (o->flags & (WML_OPT_PATH | WML_OPT_EXISTS)) {
            wml_buf_cstr(out, ") _winml_files; return ;;\n");
        } else {
            wml_buf_cstr(out, ") return ;;\n");
        }
    }
    wml_buf_cstr(out, "            esac\n");
}

static void bash_script(struct script *s)
{
    wml_buf_cstr(s->out,
                 "# bash completion for winml: source <(winml completion bash)\n"
                 "_winml_files() {\n"
                 "    local IFS=$'\\n'\n"
                 "    compopt -o filenames 2>/dev/null\n"
                 "    COMPREPLY=($(compgen -f -- \"$cur\"))\n"
                 "}\n"
                 "_winml() {\n"
                 "    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" cmd='' i\n"
                 "    COMPREPLY=()\n"
                 "    if [[ $cur == '=' ]]; then cur=''\n"
                 "    elif [[ $prev == '=' ]]; then prev=\"${COMP_WORDS[COMP_CWORD-2]}\"; fi\n"
                 "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                 "        if [[ ${COMP_WORDS[i]} != -* ]]; then cmd=\"${COMP_WORDS[i]}\"; break; fi\n"
                 "    done\n"
                 "    case \"$cmd\" in\n"
                 "        '')\n"
                 "            COMPREPLY=($(compgen -W '");
    for (size_t i = 0; i < s->all.v.len; i++) wml_buf_fmt(s->out, "%s ", s->all.v.at[i]->name);
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(wml_opts_global, i, NULL)); i++) {
        if (!is_shown(o)) continue;
        put_names(o, " ", true, s->out);
        wml_buf_char(s->out, ' ');
    }
    wml_buf_cstr(s->out, "--help' -- \"$cur\")) ;;\n");
    for (size_t i = 0; i < s->all.v.len; i++) {
        const struct wml_command *c = s->all.v.at[i];
        wml_buf_fmt(s->out, "        %s)\n", c->name);
        bash_values(c, s->out);
        wml_buf_cstr(s->out, "            COMPREPLY=($(compgen -W '");
        if (c == &wml_command_completion) wml_buf_cstr(s->out, "bash zsh fish powershell ");
        for (size_t k = 0; (o = wml_opt_row(c->opts, k, NULL)); k++) {
            if (!is_shown(o)) continue;
            put_names(o, " ", true, s->out);
            wml_buf_char(s->out, ' ');
        }
        wml_buf_cstr(s->out, "--help' -- \"$cur\")) ;;\n");
    }
    wml_buf_cstr(s->out, "    esac\n}\ncomplete -F _winml winml\n");
}

/* --- zsh --- */

/* One name of an option as an argument of _arguments. */
static void zsh_spec(const struct wml_command *c, const struct wml_opt *o, const char *name, struct wml_buf *out)
{
    wml_buf_cstr(out, " \\\n                '");
    if (o->kind == WML_KIND_LIST || o->kind == WML_KIND_COUNT) {
        wml_buf_char(out, '*');
    } else {
        wml_buf_char(out, '(');
        put_names(o, " ", true, out);
        wml_buf_char(out, ')');
    }
    wml_buf_fmt(out, "%s%s[", name, wml_row_takes_value(o) && name[1] == '-' ? "=" : "");
    put_quoted(o->help ? o->help : "", "'\\''", "[]:\\", out);
    wml_buf_char(out, ']');
    if (wml_row_takes_value(o)) {
        const char *choices = c ? wml_command_choices(c, o) : NULL;
        wml_buf_char(out, ':');
        put_quoted(choices || !o->value ? o->name : o->value, "'\\''", ":\\", out);
        wml_buf_char(out, ':');
        if (choices) {
            wml_buf_char(out, '(');
            put_words(choices, " ", out);
            wml_buf_char(out, ')');
        } else if (o->flags & (WML_OPT_PATH | WML_OPT_EXISTS)) {
            wml_buf_cstr(out, "_files");
        } else {
            wml_buf_char(out, ' ');
        }
    }
    wml_buf_char(out, '\'');
}

static void zsh_options(const struct wml_command *c, const struct wml_opt *rows, struct wml_buf *out)
{
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(rows, i, NULL)); i++) {
        if (!is_shown(o)) continue;
        struct wml_buf names = {0};
        put_names(o, " ", true, &names);
        struct wml_str rest = wml_buf_view(&names), name;
        while (wml_str_split(&rest, ' ', &name)) {
            struct wml_buf one = {0};
            wml_buf_str(&one, name);
            zsh_spec(c, o, wml_buf_text(&one), out);
            wml_buf_release(&one);
        }
        wml_buf_release(&names);
    }
    wml_buf_cstr(out, " \\\n                '(- *)'{-h,--help}'[show help]'");
}

static void zsh_script(struct script *s)
{
    wml_buf_cstr(s->out, "#compdef winml\n"
                         "# zsh completion for winml: source <(winml completion zsh)\n"
                         "_winml() {\n"
                         "    local context state state_descr line curcontext=\"$curcontext\"\n"
                         "    typeset -A opt_args\n"
                         "    _arguments -C");
    zsh_options(NULL, wml_opts_global, s->out);
    wml_buf_cstr(s->out, " \\\n                '1: :->command' '*:: :->words'\n"
                         "    case $state in\n"
                         "        command)\n"
                         "            local -a commands=(");
    for (size_t i = 0; i < s->all.v.len; i++) {
        wml_buf_fmt(s->out, "\n                '%s:", s->all.v.at[i]->name);
        put_quoted(s->all.v.at[i]->summary, "'\\''", ":\\", s->out);
        wml_buf_char(s->out, '\'');
    }
    wml_buf_cstr(s->out, ")\n            _describe command commands ;;\n"
                         "        words)\n            case $line[1] in\n");
    for (size_t i = 0; i < s->all.v.len; i++) {
        const struct wml_command *c = s->all.v.at[i];
        wml_buf_fmt(s->out, "            %s)\n            _arguments", c->name);
        zsh_options(c, c->opts, s->out);
        if (c == &wml_command_completion)
            wml_buf_cstr(s->out, " \\\n                '1:shell:(bash zsh fish powershell)'");
        wml_buf_cstr(s->out, " ;;\n");
    }
    wml_buf_cstr(s->out, "            esac ;;\n    esac\n}\n"
                         "if [[ $funcstack[1] == _winml ]]; then _winml \"$@\"; else compdef _winml winml; fi\n");
}

/* --- fish --- */

static void fish_name(const struct wml_command *c, const struct wml_opt *o, struct wml_str name, char letter,
                      struct wml_buf *out)
{
    wml_buf_cstr(out, "complete -c winml -n ");
    if (c)
        wml_buf_fmt(out, "'__fish_seen_subcommand_from %s'", c->name);
    else
        wml_buf_cstr(out, "__fish_use_subcommand");
    if (letter) wml_buf_fmt(out, " -s %c", letter);
    wml_buf_fmt(out, " -l %.*s", WML_ARG(name));
    const char *choices = c ? wml_command_choices(c, o) : NULL;
    if (choices) {
        wml_buf_cstr(out, " -x -a '");
        put_words(choices, " ", out);
        wml_buf_char(out, '\'');
    } else if (wml_row_takes_value(o)) {
        wml_buf_cstr(out, o->flags & (WML_OPT_PATH | WML_OPT_EXISTS) ? " -r -F" : " -x");
    }
    wml_buf_cstr(out, " -d '");
    put_quoted(o->help ? o->help : "", "\\'", "\\", out);
    wml_buf_cstr(out, "'\n");
}

static void fish_options(const struct wml_command *c, const struct wml_opt *rows, struct wml_buf *out)
{
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(rows, i, NULL)); i++) {
        if (!is_shown(o)) continue;
        fish_name(c, o, wml_str(o->name), o->letter, out);
        struct wml_str rest = wml_str(o->alias), alias;
        while (wml_str_split(&rest, ' ', &alias))
            if (alias.len) fish_name(c, o, alias, 0, out);
        if (o->kind != WML_KIND_FLAG || o->flags & WML_OPT_SWITCH) continue;
        struct wml_buf no = {0};
        wml_buf_fmt(&no, "no-%s", o->name);
        fish_name(c, o, wml_buf_view(&no), o->no_letter, out);
        wml_buf_release(&no);
    }
}

static void fish_script(struct script *s)
{
    wml_buf_cstr(s->out, "# fish completion for winml: winml completion fish > ~/.config/fish/completions/winml.fish\n"
                         "complete -c winml -f\n"
                         "complete -c winml -s h -l help -d 'Show help'\n");
    fish_options(NULL, wml_opts_global, s->out);
    for (size_t i = 0; i < s->all.v.len; i++) {
        const struct wml_command *c = s->all.v.at[i];
        wml_buf_fmt(s->out, "complete -c winml -n __fish_use_subcommand -a %s -d '", c->name);
        put_quoted(c->summary, "\\'", "\\", s->out);
        wml_buf_cstr(s->out, "'\n");
        fish_options(c, c->opts, s->out);
    }
    wml_buf_cstr(s->out, "complete -c winml -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish powershell'\n");
}

/* --- PowerShell --- */

static void power_names(const struct wml_opt *rows, struct wml_buf *out)
{
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(rows, i, NULL)); i++) {
        if (!is_shown(o)) continue;
        wml_buf_char(out, '\'');
        put_names(o, "', '", true, out);
        wml_buf_cstr(out, "', ");
    }
    wml_buf_cstr(out, "'-h', '--help'");
}

static void power_values(const struct wml_command *c, struct wml_buf *out)
{
    const struct wml_opt *o;
    for (size_t i = 0; (o = wml_opt_row(c->opts, i, NULL)); i++) {
        const char *choices = wml_command_choices(c, o);
        if (!choices || !is_shown(o)) continue;
        struct wml_buf names = {0};
        put_names(o, " ", false, &names);
        struct wml_str rest = wml_buf_view(&names), name;
        while (wml_str_split(&rest, ' ', &name)) {
            wml_buf_fmt(out, "        '%s %.*s' = @('", c->name, WML_ARG(name));
            put_words(choices, "', '", out);
            wml_buf_cstr(out, "')\n");
        }
        wml_buf_release(&names);
    }
}

static void power_script(struct script *s)
{
    wml_buf_cstr(s->out,
                 "# PowerShell completion for winml: winml completion powershell | Out-String | Invoke-Expression\n"
                 "Register-ArgumentCompleter -Native -CommandName winml -ScriptBlock {\n"
                 "    param($wordToComplete, $commandAst, $cursorPosition)\n"
                 "    $commands = [ordered]@{\n");
    for (size_t i = 0; i < s->all.v.len; i++) {
        wml_buf_fmt(s->out, "        '%s' = '", s->all.v.at[i]->name);
        put_quoted(s->all.v.at[i]->summary, "''", "", s->out);
        wml_buf_cstr(s->out, "'\n");
    }
    wml_buf_cstr(s->out, "    }\n    $options = @{\n        '' = @(");
    power_names(wml_opts_global, s->out);
    wml_buf_cstr(s->out, ")\n");
    for (size_t i = 0; i < s->all.v.len; i++) {
        wml_buf_fmt(s->out, "        '%s' = @(", s->all.v.at[i]->name);
        if (s->all.v.at[i] == &wml_command_completion)
            wml_buf_cstr(s->out, "'bash', 'zsh', 'fish', 'powershell', ");
        power_names(s->all.v.at[i]->opts, s->out);
        wml_buf_cstr(s->out, ")\n");
    }
    wml_buf_cstr(s->out, "    }\n    $values = @{\n");
    for (size_t i = 0; i < s->all.v.len; i++) power_values(s->all.v.at[i], s->out);
    wml_buf_cstr(s->out,
                 "    }\n"
                 "    $words = @($commandAst.CommandElements | Select-Object -Skip 1 | ForEach-Object { \"$_\" })\n"
                 "    if ($wordToComplete -and $words.Count -and $words[-1] -eq $wordToComplete) {\n"
                 "        $words = @($words | Select-Object -SkipLast 1)\n"
                 "    }\n"
                 "    $command = [string]($words | Where-Object { $_ -notlike '-*' } | Select-Object -First 1)\n"
                 "    $last = if ($words.Count) { $words[-1] } else { '' }\n"
                 "    $found = if ($values.ContainsKey(\"$command $last\")) { $values[\"$command $last\"] }\n"
                 "        elseif (-not $command) { @($commands.Keys) + $options[''] }\n"
                 "        else { $options[$command] }\n"
                 "    $found | Where-Object { $_ -like \"$wordToComplete*\" } | ForEach-Object {\n"
                 "        $about = if ($commands.Contains($_)) { $commands[$_] } else { $_ }\n"
                 "        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $about)\n"
                 "    }\n"
                 "}\n");
}

bool wml_completion(const struct wml_program *p, struct wml_str shell, struct wml_buf *out)
{
    static void (*const scripts[])(struct script *) = {bash_script, zsh_script, fish_script, power_script};
    for (size_t i = 0; i < WML_COUNT(shells); i++) {
        if (!wml_str_ieq(shell, wml_str(shells[i])) &&
            !(i == 3 && (wml_str_ieq(shell, WML_STR("pwsh"))))) continue;
        struct script s = {.p = p, .out = out};
        wml_program_commands(p, &s.all);
        scripts[i](&s);
        WML_VEC_RELEASE(&s.all.v);
        return true;
    }
    return false;
}
