// SPDX-License-Identifier: Apache-2.0
// The task managers of a local cluster as children: started, started again, named in the state
// file, and gone at the end. Scripts stand for them.
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>

#include "cluster/manager/local.h"
#include "tests/cluster/manager_testing.h"

typedef struct cluster {
    boss b;
    char base[64], folder[96], program[96], state[96];
} cluster;

static void cluster_start(cluster *c, uint32_t workers, const char *script)
{
    char why[300] = "";
    c->b = (boss){0};
    snprintf(c->base, sizeof c->base, "/tmp/leat-local-XXXXXX");
    cr_assert(mkdtemp(c->base) != NULL);
    snprintf(c->folder, sizeof c->folder, "%s/jobmanager", c->base);
    snprintf(c->b.folder, sizeof c->b.folder, "%.63s", c->folder);
    snprintf(c->program, sizeof c->program, "%s/leat", c->base);
    snprintf(c->state, sizeof c->state, "%s/cluster.json", c->base);
    FILE *file = fopen(c->program, "w");
    cr_assert(file && fprintf(file, "#!/bin/sh\n%s\n", script) > 0 && fclose(file) == 0);
    cr_assert(chmod(c->program, 0700) == 0);
    leati_config_init(&c->b.options.config);
    static const char *const more[] = {"-D", "workers=1", NULL};
    c->b.options.bind = "127.0.0.1";
    c->b.options.folder = c->folder;
    c->b.options.state_file = c->state;
    c->b.options.local_workers = workers;
    c->b.options.slots = 2;
    c->b.options.program = c->program;
    c->b.options.worker_args = more;
    cr_assert(leati_manager_open(&c->b.options, &c->b.manager, why, sizeof why) == LEAT_OK, "%s",
              why);
    leat_err err = leati_local_start(c->b.manager, why, sizeof why);
    cr_assert(err == LEAT_OK, "%s", why);
    cr_assert(leati_manager_write_state(c->b.manager, why, sizeof why) == LEAT_OK);
    cr_assert(pthread_create(&c->b.thread, NULL, boss_main, c->b.manager) == 0);
}

static void cluster_stop(cluster *c)
{
    leati_manager_stop(c->b.manager);
    pthread_join(c->b.thread, NULL);
    c->b.manager->stopping = true;
    leati_local_stop(c->b.manager, LONG_MS);
    leati_manager_close(&c->b.manager);
    cr_expect(access(c->folder, F_OK) != 0);
    leati_remove_tree(c->base);
}

static int64_t pid_of(cluster *c, uint32_t index)
{
    pthread_mutex_lock(&c->b.manager->lock);
    int64_t pid = c->b.manager->local->children[index].pid;
    pthread_mutex_unlock(&c->b.manager->lock);
    return pid;
}

// What the state file says of the child with that index, from 1: its pid; 0: nothing.
static int64_t pid_in_state(const cluster *c, int64_t index, json_t **state)
{
    json_t *root = json_load_file(c->state, 0, NULL);
    cr_assert(root, "the state file is not whole");
    int64_t pid = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(root, "taskmanagers")); i++) {
        json_t *child = json_array_get(json_object_get(root, "taskmanagers"), i);
        if (json_integer_value(json_object_get(child, "index")) != index)
            continue;
        pid = json_integer_value(json_object_get(child, "pid"));
        cr_expect(json_integer_value(json_object_get(child, "start_ticks")) > 0);
    }
    if (state)
        *state = root;
    else
        json_decref(root);
    return pid;
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "r");
    size_t got = file ? fread(text, 1, size - 1, file) : 0;
    text[got] = '\0';
    if (file)
        fclose(file);
}

Test(local, children_are_started_with_what_they_need)
{
    cluster c;
    char path[128], text[1000] = "", expected[1000];
    cluster_start(&c, 2, "echo \"$@\"; cat; echo end; exec sleep 1000");
    snprintf(path, sizeof path, "%s/taskmanager-2.log", c.base);
    while (!strstr(text, "end\n"))
        read_text(path, text, sizeof text);
    snprintf(expected, sizeof expected,
             "taskmanager -m %s --index 2 -s 2 --folder %s/taskmanager-2 --log-file"
             " %s/taskmanager-2.log -D workers=1\nend\n",
             c.b.manager->rpc_address, c.base, c.base);
    cr_expect_str_eq(text, expected);
    cluster_stop(&c);
}

Test(local, the_state_file_names_the_processes)
{
    cluster c;
    json_t *state;
    cluster_start(&c, 2, "exec sleep 1000");
    cr_expect(pid_in_state(&c, 1, NULL) == pid_of(&c, 0));
    cr_expect(pid_in_state(&c, 2, &state) == pid_of(&c, 1));
    cr_expect(json_integer_value(json_object_get(state, "pid")) == (json_int_t)getpid());
    cr_expect((uint64_t)json_integer_value(json_object_get(state, "start_ticks")) ==
              leati_start_ticks(getpid()));
    cr_expect_str_eq(json_string_value(json_object_get(state, "rpc")), c.b.manager->rpc_address);
    cr_expect_str_eq(json_string_value(json_object_get(state, "cluster")), c.b.manager->cluster);
    cr_expect_str_eq(json_string_value(json_object_get(state, "version")), leat_version());
    cr_expect(json_integer_value(json_object_get(state, "workers")) == 2);
    cr_expect(json_integer_value(json_object_get(state, "slots")) == 2);
    json_decref(state);
    cluster_stop(&c);
}

Test(local, one_that_dies_is_started_again)
{
    cluster c;
    cluster_start(&c, 1, "exec sleep 1000");
    int64_t before = pid_of(&c, 0), after = before;
    cr_assert(kill((pid_t)before, SIGKILL) == 0);
    while (after == before || after == 0)
        after = pid_of(&c, 0);
    while (pid_in_state(&c, 1, NULL) != after)
        sched_yield();
    char text[80];
    pthread_mutex_lock(&c.b.manager->lock);
    cr_expect(leati_local_death(c.b.manager, before, text, sizeof text));
    cr_expect(!leati_local_death(c.b.manager, 1, text + 40, 40));
    pthread_mutex_unlock(&c.b.manager->lock);
    cr_expect_str_eq(text, "died of signal 9 (SIGKILL)");
    cluster_stop(&c);
    cr_expect(kill((pid_t)after, 0) != 0);
}

Test(local, its_death_is_the_reason_of_its_jobs)
{
    cluster c;
    fake f;
    leati_msg_registered answer;
    char id[LEATI_ID_SIZE], text[LEATI_REASON_SIZE], expected[120];
    cluster_start(&c, 1, "exec sleep 1000");
    put_artifact(&c.b);
    int64_t pid = pid_of(&c, 0);
    leati_msg_register r = fake_registration("child", 1, 1);
    r.pid = pid;
    fake_connect(&f, &c.b);
    fake_send(&f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &r);
    fake_expect(&f, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered), &answer);
    submit_simple(&c.b, 1, id);
    (void)expect_deploy(&f);
    cr_assert(kill((pid_t)pid, SIGKILL) == 0);
    wait_phase(&c.b, id, LEATI_PHASE_FAILED);
    failure_of(&c.b, id, 0, text);
    snprintf(expected, sizeof expected, "taskmanager 1 (host, pid %lld) died of signal 9 (SIGKILL)",
             (long long)pid);
    cr_expect_str_eq(text, expected);
    fake_stop(&f);
    cluster_stop(&c);
}

Test(local, at_the_end_those_that_have_registered_are_told_and_stubborn_ones_are_killed)
{
    cluster c;
    fake f;
    leati_msg_registered answer;
    cluster_start(&c, 1, "trap '' TERM INT; while :; do sleep 1000; done");
    leati_msg_register r = fake_registration("child", 1, 1);
    r.pid = pid_of(&c, 0);
    fake_connect(&f, &c.b);
    fake_send(&f, LEATI_MESSAGE_REGISTER, LEAT_TYPE(leati_msg_register), &r);
    fake_expect(&f, LEATI_MESSAGE_REGISTERED, LEAT_TYPE(leati_msg_registered), &answer);
    leati_manager_stop(c.b.manager);
    pthread_join(c.b.thread, NULL);
    leati_local_stop(c.b.manager, 50);
    cr_expect(fake_has(&f, LEATI_MESSAGE_SHUTDOWN) || (fake_wait_closed(&f), false) ||
              fake_has(&f, LEATI_MESSAGE_SHUTDOWN));
    cr_expect(kill((pid_t)r.pid, 0) != 0);
    leati_manager_close(&c.b.manager);
    fake_stop(&f);
    leati_remove_tree(c.base);
}

Test(local, a_program_that_is_missing_is_told)
{
    boss b;
    char why[300] = "";
    boss_init(&b);
    b.options.local_workers = 1;
    b.options.slots = 1;
    b.options.program = "/nowhere/leat";
    cr_assert(leati_manager_open(&b.options, &b.manager, why, sizeof why) == LEAT_OK);
    cr_expect(leati_local_start(b.manager, why, sizeof why) == LEAT_EIO);
    cr_expect_str_eq(why, "task manager 1 cannot be started: \"/nowhere/leat\": No such file or"
                          " directory");
    leati_manager_close(&b.manager);
}
